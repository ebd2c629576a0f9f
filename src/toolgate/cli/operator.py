"""Who sits at the command line, and why they change something: it stands in the audit."""

import getpass
from typing import Annotated

import typer

from toolgate.bootstrap import Toolgate
from toolgate.tenancy.tenancy import Tenancy

Why = Annotated[str, typer.Option("--why", help="The reason, for the audit.")]
Everywhere = Annotated[
    str, typer.Option("--tenant", help="Only in this tenant; without it, in every one.")
]
InTenant = Annotated[str, typer.Option("--tenant", help="The tenant.")]


def signed(gate: Toolgate, why: str) -> Tenancy:
    """Where changes are made, in the name of whoever is logged in."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):
        who = "unknown"
    return gate.tenancy.by(f"cli:{who}", why)


def whole(text: str) -> tuple[str, ...]:
    """`a,b, c` as its parts."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
