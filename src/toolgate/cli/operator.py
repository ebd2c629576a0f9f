"""Who sits at the command line, and why they change something: it stands in the audit."""

import getpass
from typing import Annotated

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli.session import AGENT, TENANT
from toolgate.tenancy import roster
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tenancy.world import World

Why = Annotated[str, typer.Option("--why", help="The reason, for the audit.")]
Everywhere = Annotated[
    str, typer.Option("--tenant", help="Only in this tenant; without it, in every one.")
]
AGAIN = "by commas or given again"
NO_LIST: list[str] = []
InTenant = Annotated[str, typer.Option("--tenant", help="The tenant.")]


def signed(gate: Toolgate, why: str) -> Tenancy:
    """Where changes are made, in the name of whoever is logged in."""
    return gate.tenancy.by(login(), why)


def login() -> str:
    """Whoever is logged in."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return "cli:unknown"


def whole(given: list[str]) -> tuple[str, ...]:
    """`--deny a,b --deny c` as its parts."""
    parts = (part.strip() for text in given for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def need(world: World, tenant: str, agent: str = "") -> None:
    """`InvalidRequest` where these are not on record; whom commands mean unsaid may be new."""
    if not _is_usual(tenant, agent):
        roster.need(world, tenant, agent)


def newcomers(before: World, gate: Toolgate, tenant: str, agent: str = "") -> list[str]:
    """A sentence for each that a change put on record, unless commands mean it unsaid."""
    if _is_usual(tenant, agent):
        return []
    return roster.newcomers(before, gate.tenancy.world, tenant, agent)


def _is_usual(tenant: str, agent: str) -> bool:
    return tenant == TENANT and agent in {"", AGENT}
