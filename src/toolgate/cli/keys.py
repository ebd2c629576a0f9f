"""`toolgate keys`: who may knock at the server. A secret is shown once and kept nowhere."""

from typing import Annotated, Any

import typer

from toolgate import clock
from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.capsules import capsules_there
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import Why, signed
from toolgate.cli.session import Config, Json, usage
from toolgate.tenancy import lasting
from toolgate.tenancy.keys import WITHOUT_AGENT, Key, Role, need_another_admin
from toolgate.tenancy.layer import roles_of
from toolgate.tenancy.roster import strangers
from toolgate.tenancy.tenancy import Tenancy

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Make, list and revoke keys.")
_COLUMNS = (
    *("id", "role", "tenant", "agent", "user", "persona", "roles", "created", "expires"),
    "last_used",
)
Expires = Annotated[
    str, typer.Option("--expires", help="When it ends: 24h, 30d, or a moment. Else never.")
]


@app.command()
def add(
    role: Annotated[
        Role,
        typer.Option(
            "--role",
            help="An agent calls tools; an approver decides what they ask, an operator looks "
            "after what they did, a tenant_admin runs one tenant, an admin all of them.",
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
    expires: Expires = "",
    create: Annotated[
        bool, typer.Option("--create", metavar="", help="Put the tenant and agent on record first.")
    ] = False,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Make a key and show its secret, this once."""
    if role is Role.AGENT and not agent:
        raise usage("An agent's key names its agent: add --agent NAME.", json=json)
    if role in WITHOUT_AGENT and agent:
        raise usage(f"The key of a {role} names no agent: leave --agent out.", json=json)

    async def work(gate: Toolgate) -> tuple[dict[str, Any], list[str]]:
        tenancy = signed(gate, why)
        if create:
            await _put_on_record(tenancy, tenant, agent)
        fresh = await tenancy.add_key(
            role,
            tenant=tenant,
            agent=agent,
            user=user,
            persona=persona,
            roles=has_role or (),
            expires=expires,
        )
        world = gate.tenancy.world
        known = roles_of(world.everyone.layers) | roles_of(world.tenant(tenant).layers)
        return _row(fresh.key, 0) | {"secret": fresh.secret}, strangers(fresh.key.roles, known)

    async def far(server: Server) -> tuple[dict[str, Any], list[str]]:
        if create:
            await _put_on_record_there(server, tenant, agent, why)
        told = await server.post(
            "keys",
            role=role,
            tenant=tenant,
            agent=agent,
            user=user,
            persona=persona,
            roles=has_role or [],
            expires=expires,
            why=why,
        )
        return told, told.pop("notes", [])

    fresh, notes = administer(Place(config, url, key_file), work, far, json=json)
    # Beside the answer, whose last line is the secret.
    for note in notes:
        show.warning(note)
    if json:
        show.as_json(fresh)
        return
    whose = f"agent {agent} of {tenant}" if agent else f"tenant {tenant}"
    show.line(f"{fresh['id']} is a key of {whose}. Its secret is shown this once; keep it:")
    show.line(fresh["secret"])


@app.command("list")
def list_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """The keys that open something."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        now_ns, uses = clock.unix_ns(), await gate.tenancy.uses.known()
        held = [key for key in gate.tenancy.world.keys.values() if not key.is_over(now_ns)]
        held.sort(key=lambda key: (key.tenant, key.agent, key.id))
        return [_row(key, uses.get(key.id, 0)) for key in held]

    async def far(server: Server) -> list[dict[str, Any]]:
        return await server.each("keys")

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
    else:
        shown = [row | {"roles": ", ".join(row["roles"])} for row in rows]
        show.table(_COLUMNS, [[row[column] or "" for column in _COLUMNS] for row in shown])


@app.command()
def rotate(
    id: Annotated[str, typer.Argument(help="The key's id, as toolgate keys list shows it.")],  # noqa: A002
    overlap: Annotated[
        str, typer.Option("--overlap", help="How long the old secret still opens: 0, 30m, 1h, 7d.")
    ] = "1h",
    expires: Annotated[
        str, typer.Option("--expires", help="When the new one ends; else it lasts as the old one.")
    ] = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Make another secret for the same holder; the old one opens for a while, then nothing."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        fresh = await signed(gate, why).rotate_key(id, overlap=overlap, expires=expires)
        old = next((key for key in gate.tenancy.world.keys.values() if key.id == id), None)
        until = lasting.shown(old.expires_ns) if old is not None else None
        told = _row(fresh.key, 0) | {"secret": fresh.secret}
        return told | {"replaces": id, "replaced_until": until}

    async def far(server: Server) -> dict[str, Any]:
        return await server.post("keys", id, "rotate", overlap=overlap, expires=expires, why=why)

    fresh = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(fresh)
        return
    old = f"which opens until {fresh['replaced_until']}"
    if not lasting.span(overlap, "overlap"):
        old = "which opens nothing any more"
    show.line(
        f"{fresh['id']} takes the place of {id}, {old}. Its secret is shown this once; keep it:"
    )
    show.line(fresh["secret"])


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(help="The key's id, as toolgate keys list shows it.")],  # noqa: A002
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Also where it is the last admin's key.")
    ] = False,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Make a key open nothing any more."""

    async def work(gate: Toolgate) -> None:
        if not force:
            need_another_admin(id, gate.tenancy.world.keys.values())
        await signed(gate, why).revoke_key(id)

    async def far(server: Server) -> None:
        await server.delete("keys", id, force=force, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    show.told({"id": id, "revoked": True}, f"{id} opens nothing any more.", json=json)


async def _put_on_record(tenancy: Tenancy, tenant: str, agent: str) -> None:
    # An agent that is there keeps its mode: a key must not widen what it may call.
    if agent and agent not in tenancy.world.tenant(tenant).capsules:
        await tenancy.set_agent(tenant, agent)
    elif not agent:
        await tenancy.add_tenant(tenant)


async def _put_on_record_there(server: Server, tenant: str, agent: str, why: str) -> None:
    if agent and agent not in await capsules_there(server, tenant):
        await server.put("agents", agent, tenant=tenant, why=why)
    elif not agent:
        await server.put("tenants", tenant, why=why)


def _row(key: Key, used_ns: int) -> dict[str, Any]:
    return {
        "id": key.id,
        "role": str(key.role),
        "tenant": key.tenant,
        "agent": key.agent,
        "user": key.user,
        "persona": key.persona,
        "roles": list(key.roles),
        "created": lasting.shown(key.created_ns),
        "expires": lasting.shown(key.expires_ns),
        "last_used": lasting.shown(used_ns),
    }
