"""`toolgate layers`: what everybody, or a role, is left with."""

from typing import Annotated, Any

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import AGAIN, NO_LIST, Everywhere, Why, newcomers, signed, whole
from toolgate.cli.session import Config, Json
from toolgate.errors import InvalidRequest
from toolgate.server.admin.tools import find
from toolgate.tenancy import roster
from toolgate.tenancy.layer import Layer, Layers, row_of, rows_of

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Layers that narrow what may be called."
)
Name = Annotated[str, typer.Argument(help="The layer's name.")]
Role = Annotated[str, typer.Option("--role", help="Of this role; without it, of everybody.")]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", help=f"Only these, {AGAIN}: names, group:read, category:data, mail.*"),
]
Deny = Annotated[list[str], typer.Option("--deny", help=f"Never these, {AGAIN}.")]
Reason = Annotated[str, typer.Option("--reason", help="Shown to whoever asks why.")]


@app.command("list")
def list_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """Every layer."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        kept = gate.tenancy.world.layers()
        return [row for tenant, layers in kept for row in rows_of(tenant, layers)]

    async def far(server: Server) -> list[dict[str, Any]]:
        return await server.each("layers")

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    show.table(
        ("layer", "role", "tenant", "allow", "deny", "reason"),
        [
            (
                row["name"],
                row["role"] or "(everybody)",
                row["tenant"] or "(every one)",
                "(all)" if row["allow"] is None else ", ".join(row["allow"]) or "(nothing)",
                ", ".join(row["deny"]),
                row["reason"],
            )
            for row in rows
        ],
    )


@app.command("set")
def set_(
    name: Name,
    allow: Allow = None,
    deny: Deny = NO_LIST,
    role: Role = "",
    tenant: Everywhere = "",
    reason: Reason = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Write a layer, whole. Without --allow it leaves all but what it denies."""
    layer = Layer(allow=None if allow is None else whole(allow), deny=whole(deny), reason=reason)

    async def work(gate: Toolgate) -> list[str]:
        before = gate.tenancy.world
        await signed(gate, why).set_layer(name, layer, role=role, tenant=tenant)
        unheard = roster.unheard(layer.allow or (), gate.catalog.current.specs)
        return [*newcomers(before, gate, tenant), *unheard]

    async def far(server: Server) -> list[str]:
        fields = msgspec.to_builtins(layer) | {"role": role, "tenant": tenant, "why": why}
        return (await server.put("layers", name, **fields)).get("notes", [])

    notes = administer(Place(config, url, key_file), work, far, json=json)
    told = f"Layer {name} of {_whom(role, tenant)} is written."
    show.told(row_of(tenant, role, name, layer), told, json=json, notes=notes)


@app.command()
def permit(
    name: Name,
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    role: Role = "",
    tenant: Everywhere = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Let a layer leave one more tool."""

    async def work(gate: Toolgate) -> Layer:
        find(gate, tool)
        wider = _wider(_layer(gate, tenant, role, name), tool)
        await signed(gate, why).set_layer(name, wider, role=role, tenant=tenant)
        return wider

    async def far(server: Server) -> Layer:
        await server.get("tools", tool)
        rows = await server.each("layers", tenant=tenant)
        kept = {
            (row["role"], row["name"]): msgspec.convert(row, Layer)
            for row in rows
            if row["tenant"] == tenant
        }
        wider = _wider(_named(kept, tenant, role, name), tool)
        fields = msgspec.to_builtins(wider) | {"role": role, "tenant": tenant, "why": why}
        await server.put("layers", name, **fields)
        return wider

    layer = administer(Place(config, url, key_file), work, far, json=json)
    told = f"Layer {name} of {_whom(role, tenant)} leaves {tool}"
    sets = [one for one in layer.deny if ":" in one or "*" in one]
    told += f", unless it is among {', '.join(sets)}." if sets else "."
    show.told(row_of(tenant, role, name, layer), told, json=json)


@app.command()
def remove(
    name: Name,
    role: Role = "",
    tenant: Everywhere = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Take a layer away."""

    async def work(gate: Toolgate) -> None:
        _layer(gate, tenant, role, name)
        await signed(gate, why).set_layer(name, None, role=role, tenant=tenant)

    async def far(server: Server) -> None:
        await server.delete("layers", name, role=role, tenant=tenant, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = f"Layer {name} of {_whom(role, tenant)} is gone."
    show.told({"name": name, "role": role, "tenant": tenant, "removed": True}, told, json=json)


def _layer(gate: Toolgate, tenant: str, role: str, name: str) -> Layer:
    """The layer of this name; a misspelt one would be believed to be gone."""
    world = gate.tenancy.world
    layers = world.tenant(tenant).layers if tenant else world.everyone.layers
    return _named(layers, tenant, role, name)


def _named(layers: Layers, tenant: str, role: str, name: str) -> Layer:
    layer = layers.get((role, name))
    if layer is None:
        raise InvalidRequest(
            f"There is no layer {name[:80]!r} of {_whom(role, tenant)}; nothing was changed. "
            "See which there are: toolgate layers list"
        )
    return layer


def _wider(layer: Layer, tool: str) -> Layer:
    return msgspec.structs.replace(
        layer,
        allow=None if layer.allow is None else tuple(dict.fromkeys((*layer.allow, tool))),
        deny=tuple(one for one in layer.deny if one != tool),
    )


def _whom(role: str, tenant: str) -> str:
    whom = f"role {role}" if role else "everybody"
    return f"{whom} in {tenant}" if tenant else whom
