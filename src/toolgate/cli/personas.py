"""`toolgate personas`: what a persona is kept from, and whether it may add tools."""

from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import Why, signed
from toolgate.cli.session import Config, Json

app = typer.Typer(no_args_is_help=True, add_completion=False, help="What personas may not do.")
Name = Annotated[str, typer.Argument(help="The persona's name.")]
Tool = Annotated[str, typer.Argument(help="The tool's name.")]


@app.command("list")
def list_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """The personas that somebody has spoken of."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        personas = gate.tenancy.world.everyone.personas
        return [
            {
                "id": name,
                "can_add_tools": persona.can_add_tools,
                "kept_from": {
                    tool: one.reason
                    for tool, one in sorted(persona.restrictions.items())
                    if not one.allowed
                },
            }
            for name, persona in sorted(personas.items())
        ]

    async def far(server: Server) -> list[dict[str, Any]]:
        return [
            {
                "id": one["id"],
                "can_add_tools": one["can_add_tools"],
                "kept_from": {
                    tool: said["reason"]
                    for tool, said in one["tools"].items()
                    if not said["allowed"]
                },
            }
            for one in await server.each("personas")
        ]

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    words = {True: "yes", False: "no", None: "(nobody has said)"}
    show.table(
        ("persona", "may add tools", "is kept from"),
        [(row["id"], words[row["can_add_tools"]], ", ".join(row["kept_from"])) for row in rows],
    )


@app.command("set")
def set_(
    name: Name,
    can_add_tools: Annotated[
        bool,
        typer.Option(
            "--can-add-tools/--cannot-add-tools", metavar="", help="Whether it may add tools."
        ),
    ],
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Say whether a persona may add tools."""

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).set_persona(name, can_add_tools)

    async def far(server: Server) -> None:
        await server.put("personas", name, can_add_tools=can_add_tools, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = f"Persona {name} {'may' if can_add_tools else 'may not'} add tools."
    show.told({"id": name, "can_add_tools": can_add_tools}, told, json=json)


@app.command()
def unset(
    name: Name,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Take back what was said about whether a persona may add tools."""

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).set_persona(name, None)

    async def far(server: Server) -> None:
        await server.put("personas", name, can_add_tools=None, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = f"Nobody has said any more whether persona {name} may add tools."
    show.told({"id": name, "can_add_tools": None}, told, json=json)


@app.command()
def restrict(
    name: Name,
    tool: Tool,
    reason: Annotated[str, typer.Option("--reason", help="Shown to whoever asks why.")] = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Keep a persona from a tool."""

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).restrict(name, tool, reason=reason)

    async def far(server: Server) -> None:
        await server.put("personas", name, "tools", tool, allowed=False, reason=reason, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = f"Persona {name} is kept from {tool}."
    show.told({"id": name, "tool": tool, "allowed": False}, told, json=json)


@app.command()
def allow(
    name: Name,
    tool: Tool,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Do not keep a persona from a tool any more."""

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).restrict(name, tool, allowed=None)

    async def far(server: Server) -> None:
        await server.put("personas", name, "tools", tool, allowed=None, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = f"Persona {name} is not kept from {tool} any more."
    show.told({"id": name, "tool": tool, "allowed": None}, told, json=json)
