"""`toolgate keys`: who may knock at the server. A secret is shown once and kept nowhere."""

from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.operator import Why, signed
from toolgate.cli.session import Config, Json, usage
from toolgate.errors import InvalidRequest
from toolgate.tenancy.keys import FreshKey, Key, Role
from toolgate.tenancy.layer import roles_of
from toolgate.tenancy.roster import strangers
from toolgate.tenancy.tenancy import Tenancy

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Make, list and revoke keys.")
_COLUMNS = ("id", "role", "tenant", "agent", "user", "persona", "roles")


@app.command()
def add(
    role: Annotated[
        Role,
        typer.Option(
            "--role",
            help="An agent calls tools; a tenant_admin runs one tenant, an admin all of them.",
        ),
    ],
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant it speaks for.")],
    agent: Annotated[
        str, typer.Option("--agent", help="The agent it speaks for; an admin needs none.")
    ] = "",
    user: Annotated[str, typer.Option("--user", help="The user it stands for.")] = "",
    persona: Annotated[str, typer.Option("--persona", help="The persona it stands for.")] = "",
    has_role: Annotated[
        list[str] | None,
        typer.Option("--has-role", help="A role whose layers hold for it; can be repeated."),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", metavar="", help="Put the tenant and agent on record first.")
    ] = False,
    config: Config = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Make a key and show its secret, this once."""
    if role is Role.AGENT and not agent:
        raise usage("An agent's key names its agent: add --agent NAME.", json=json)
    if role is Role.TENANT_ADMIN and agent:
        raise usage("A tenant_admin's key names no agent: leave --agent out.", json=json)

    async def work(gate: Toolgate) -> tuple[FreshKey, list[str]]:
        tenancy = signed(gate, why)
        if create:
            await _put_on_record(tenancy, tenant, agent)
        try:
            fresh = await tenancy.add_key(
                role,
                tenant=tenant,
                agent=agent,
                user=user,
                persona=persona,
                roles=has_role or (),
            )
        except InvalidRequest as error:
            if not create:
                error.add_note("Put it on record together with its key: add --create.")
            raise
        world = gate.tenancy.world
        known = roles_of(world.everyone.layers) | roles_of(world.tenant(tenant).layers)
        return fresh, strangers(fresh.key.roles, known)

    fresh, notes = administer(config, work, json=json)
    # Beside the answer, whose last line is the secret.
    for note in notes:
        show.warning(note)
    if json:
        show.as_json(_row(fresh.key) | {"secret": fresh.secret})
        return
    whose = f"agent {agent} of {tenant}" if agent else f"tenant {tenant}"
    show.line(f"{fresh.key.id} is a key of {whose}. Its secret is shown this once; keep it:")
    show.line(fresh.secret)


@app.command("list")
def list_(config: Config = None, json: Json = False) -> None:
    """The keys that open something."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        held = [key for key in gate.tenancy.world.keys.values() if not key.revoked]
        return [_row(key) for key in sorted(held, key=lambda key: (key.tenant, key.agent, key.id))]

    rows = administer(config, work, json=json)
    if json:
        show.as_json(rows)
    else:
        shown = [row | {"roles": ", ".join(row["roles"])} for row in rows]
        show.table(_COLUMNS, [[row[column] for column in _COLUMNS] for row in shown])


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(help="The key's id, as toolgate keys list shows it.")],  # noqa: A002
    config: Config = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Make a key open nothing any more."""

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).revoke_key(id)

    administer(config, work, json=json)
    show.told({"id": id, "revoked": True}, f"{id} opens nothing any more.", json=json)


async def _put_on_record(tenancy: Tenancy, tenant: str, agent: str) -> None:
    # An agent that is there keeps its mode: a key must not widen what it may call.
    if agent and agent not in tenancy.world.tenant(tenant).capsules:
        await tenancy.set_agent(tenant, agent)
    elif not agent:
        await tenancy.add_tenant(tenant)


def _row(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "role": str(key.role),
        "tenant": key.tenant,
        "agent": key.agent,
        "user": key.user,
        "persona": key.persona,
        "roles": list(key.roles),
    }
