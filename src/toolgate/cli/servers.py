"""`toolgate servers`: MCP servers whose tools are offered here, and what of them is agreed to."""

from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import log, show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import NO_LIST, Why, signed, whole
from toolgate.cli.session import Config, Json, usage, with_gate
from toolgate.errors import InvalidRequest
from toolgate.server.admin.servers import checked
from toolgate.settings.part import NOT_A_VALUE, is_variable

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="MCP servers whose tools are offered here."
)
Name = Annotated[str, typer.Argument(help="The server's name.")]
Address = Annotated[str, typer.Option("--at", help="The address of one that speaks HTTP.")]
Command = Annotated[
    list[str] | None, typer.Argument(help="The program and its arguments, behind --.")
]
Tools = Annotated[
    list[str] | None, typer.Argument(help="Tools by the server's own names; all that wait.")
]


@app.command("list")
def list_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """Every server, of the settings and of the store. Here, no server is asked."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        return gate.servers.rows()

    async def far(server: Server) -> list[dict[str, Any]]:
        return (await server.get("servers"))["servers"]

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    columns = ("name", "origin", "state", "tools", "held", "where", "problem")
    show.table(columns, [[str(row[column]) for column in columns] for row in rows])


@app.command("show")
def show_(
    name: Name, config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """How a server is: what is wrong with it, and the last lines that its program wrote."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        return await gate.servers.shown(name)

    async def far(server: Server) -> dict[str, Any]:
        return await server.get("servers", name)

    log.to_nobody()
    found = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(found)
        return
    for field in ("name", "origin", "state", "where", "tools"):
        show.field(field, found[field])
    for field, text in (
        ("says it is", " ".join(found["server"].values())),
        ("problem", found["problem"]),
    ):
        if text:
            show.field(field, text)
    for one in found["waiting"]:
        show.field("waits", one)
    if found["last_words"]:
        show.line("It wrote last on its standard error:")
        for line in found["last_words"]:
            show.line(f"  {line}")


@app.command()
def add(
    name: Name,
    command: Command = None,
    at: Address = "",
    env: Annotated[
        list[str], typer.Option("--env", help="NAME=VALUE for its program; no secrets.")
    ] = NO_LIST,
    secret_env: Annotated[
        list[str], typer.Option("--secret-env", help="NAME=VARIABLE that holds its value.")
    ] = NO_LIST,
    header_env: Annotated[
        list[str], typer.Option("--header-env", help="HEADER=VARIABLE that holds its value.")
    ] = NO_LIST,
    readable: Annotated[
        list[str], typer.Option("--readable", help="Folders that its program may read.")
    ] = NO_LIST,
    writable: Annotated[
        list[str], typer.Option("--writable", help="Folders that its program may change.")
    ] = NO_LIST,
    host: Annotated[
        list[str], typer.Option("--host", help="Hosts that its program may reach.")
    ] = NO_LIST,
    trust: Annotated[
        str, typer.Option("--trust", help="none, or hints: believe which tools only read.")
    ] = "none",
    overlay: Annotated[str, typer.Option("--overlay", help="A file about its tools.")] = "",
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds a call may take.")] = 30,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Use a server from now on: `add NAME --at URL`, or `add NAME -- PROGRAM ARGUMENTS`.

    What it has when it is first reached is agreed to; whatever changes later waits for somebody.
    """
    fields: dict[str, Any] = {
        "command": tuple(command or ())[:1],
        "args": tuple(command or ())[1:],
        "url": at,
        "env": _pairs(env, json=json),
        "secrets_env": _variables(secret_env, json=json),
        "headers_env": _variables(header_env, json=json),
        "readable": whole(readable),
        "writable": whole(writable),
        "hosts": whole(host),
        "trust": trust,
        "overlay": overlay,
        "timeout": timeout,
    }

    async def work(gate: Toolgate) -> None:
        await gate.servers.add(signed(gate, why), name, checked(name, fields))

    async def far(server: Server) -> None:
        await server.put("servers", name, **fields, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = f"Server {name} is used from now on. See how it is: toolgate servers show {name}"
    show.told({"name": name}, told, json=json)


@app.command()
def remove(
    name: Name,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Use a server no more that was added; what was agreed to of its tools is forgotten."""

    async def work(gate: Toolgate) -> None:
        await gate.servers.remove(signed(gate, why), name)

    async def far(server: Server) -> None:
        await server.delete("servers", name, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    show.told({"name": name, "removed": True}, f"Server {name} is gone.", json=json)


@app.command("test")
def try_(
    name: Name, config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """Ask a server what it has, and say how it is."""
    log.to_nobody()

    async def work(gate: Toolgate) -> dict[str, Any]:
        return await gate.servers.tested(name)

    async def far(server: Server) -> dict[str, Any]:
        return await server.post("servers", name, "test")

    found = with_gate(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(found)
    else:
        said = " ".join(filter(None, (found["server"].get(one) for one in ("name", "version"))))
        told = f"answers ({said})" if found["ok"] else "does not answer"
        show.line(f"Server {name} {told}: {show.count(found['tools'], 'tool')}.")
        if found["problem"]:
            show.line(found["problem"])
    if not found["ok"]:
        raise typer.Exit(1)


@app.command()
def diff(
    name: Name, config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """What of a server waits for somebody: why, and what is different."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        return await gate.servers.waiting(name)

    async def far(server: Server) -> list[dict[str, Any]]:
        return (await server.get("servers", name, "diff"))["tools"]

    place = Place(config, url, key_file)
    found = with_gate(place, work, far, json=json)
    if json:
        show.as_json(found)
        return
    if not found:
        show.line(f"Nothing of server {name} waits for anybody.")
        return
    _show(found)
    show.line(f"To agree to all of it, or only to tools that you name behind {name}:")
    show.line(f"toolgate servers approve {name}{place.typed}")


@app.command()
def approve(
    name: Name,
    tools: Tools = None,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Agree to tools that wait. What is agreed to is shown: nothing else is."""
    shown: list[dict[str, Any]] = []

    async def work(gate: Toolgate) -> list[str]:
        chosen = _chosen(await gate.servers.waiting(name), tools, shown)
        return await gate.servers.approve(signed(gate, why), name, chosen)

    async def far(server: Server) -> list[str]:
        waits = (await server.get("servers", name, "diff"))["tools"]
        chosen = _chosen(waits, tools, shown)
        return (await server.post("servers", name, "approve", tools=chosen, why=why))["approved"]

    approved = with_gate(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json({"name": name, "approved": approved})
        return
    _show(shown)
    show.line(f"Agreed to {show.count(len(approved), 'tool')} of server {name}.")


def _chosen(
    waits: list[dict[str, Any]], tools: list[str] | None, shown: list[dict[str, Any]]
) -> dict[str, str]:
    """Those that were named, or all, each by what was shown of it."""
    known = {one["tool"]: one for one in waits}
    missing = [one for one in tools or () if one not in known]
    if missing or not known:
        what = f"No tool {missing[0][:80]!r}" if missing else "Nothing"
        raise InvalidRequest(f"{what} of it waits for anybody; nothing was changed.")
    shown += [known[one] for one in tools or known]
    return {one["tool"]: one["fingerprint"] for one in shown}


def _show(found: list[dict[str, Any]]) -> None:
    for one in found:
        show.line(f"{one['shown']}: {one['reason']}")
        for line in one["lines"]:
            show.line(f"  {line}")


def _variables(given: list[str], *, json: bool) -> dict[str, str]:
    """`--secret-env A=B`, where B is a variable. What is none may be a secret: it goes nowhere."""
    pairs = [one.partition("=") for one in given]
    if any(not name or not is_variable(variable) for name, _, variable in pairs):
        raise usage(f"Write NAME=VARIABLE: {NOT_A_VALUE}. Nothing was changed.", json=json)
    return {name: variable for name, _, variable in pairs}


def _pairs(given: list[str], *, json: bool) -> dict[str, str]:
    """`--env A=b` as a name and its value."""
    wrong = next((one for one in given if "=" not in one.strip("=")), None)
    if wrong is not None:
        raise usage(f"Write NAME=VALUE, not {wrong[:40]!r}.", json=json)
    return dict(one.split("=", 1) for one in given)
