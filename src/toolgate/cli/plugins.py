"""`toolgate plugins`: folders with code and tools, and what of them is agreed to."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import Why, signed
from toolgate.cli.session import Config, Json, load, usage, with_gate
from toolgate.cli.starter import files, is_name, tool_name
from toolgate.errors import InvalidRequest

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Plugins: code and tools in a folder."
)
Name = Annotated[str, typer.Argument(help="The plugin's name, which is that of its folder.")]


@app.command("list")
def list_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """Every plugin, and how it is."""

    left: list[str] = []

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        left.extend(gate.plugins.left())
        return gate.plugins.rows()

    async def far(server: Server) -> list[dict[str, Any]]:
        return (await server.get("plugins"))["plugins"]

    rows = administer(Place(config, url, key_file), work, far, json=json, definitions=True)
    if json:
        show.as_json(rows)
        return
    if not rows:
        show.line("There are no plugins. Make one: toolgate plugins new NAME")
        return
    columns = ("name", "state", "version", "tools", "problem")
    show.table(columns, [[str(row[column]) for column in columns] for row in rows])
    for one in left:
        show.aside(_LEFT.format(one))


@app.command("show")
def show_(
    name: Name, config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """How a plugin is, and what of it waits, with what is different."""

    left: list[str] = []

    async def work(gate: Toolgate) -> dict[str, Any]:
        found = await gate.plugins.shown(name)
        left.extend(one for one in gate.plugins.left() if one == name)
        return found

    async def far(server: Server) -> dict[str, Any]:
        return await server.get("plugins", name)

    found = administer(Place(config, url, key_file), work, far, json=json, definitions=True)
    if json:
        show.as_json(found)
        return
    for field in ("name", "state", "version", "description", "fingerprint", "problem"):
        if found[field]:
            show.field(field, found[field])
    for field, each in (("tool", "offers"), ("server", "servers"), ("skill", "skills")):
        for one in found[each]:
            show.field(field, one)
    for setting, state in found["settings"].items():
        show.field("setting", f"{setting} ({state})")
    if found["waiting"]:
        _show(found["waiting"])
        show.line(f"Agree to it: toolgate plugins approve {name}")
    for one in left:
        show.aside(_LEFT.format(one))


@app.command()
def approve(
    name: Name,
    fingerprint: Annotated[
        str, typer.Option("--fingerprint", help="Only this version, as `show` told it.")
    ] = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Agree to the version that waits. What is agreed to is shown: nothing else is."""
    shown: list[dict[str, Any]] = []

    async def work(gate: Toolgate) -> dict[str, Any]:
        seen = _chosen(await gate.plugins.shown(name), fingerprint, shown)
        return await gate.plugins.approve(signed(gate, why), name, seen)

    async def far(server: Server) -> dict[str, Any]:
        seen = _chosen(await server.get("plugins", name), fingerprint, shown)
        return await server.post("plugins", name, "approve", fingerprint=seen, why=why)

    found = with_gate(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(found)
        return
    _show(shown[0])
    show.line(f"Agreed to plugin {name} {found['version']}.")
    told = found["problem"] or f"It is {found['state']}: {show.count(found['tools'], 'tool')}."
    show.line(told)


@app.command("reload")
def reload_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """Look at all plugins, and load what has changed and is agreed to.

    A running server does so by itself; to have it done now, and to hear of it, name it by --url.
    """

    async def work(gate: Toolgate) -> dict[str, Any]:
        # They were looked at when the gate was opened: all that is live was loaded just now.
        rows = gate.plugins.rows()
        names = {state: [row["name"] for row in rows if row["state"] == state] for state in _STATES}
        broken = {row["name"]: row["problem"] for row in rows if row["state"] == "broken"}
        return {"loaded": names["live"], "waiting": names["waiting"], "gone": [], "broken": broken}

    async def far(server: Server) -> dict[str, Any]:
        return await server.post("plugins")

    found = administer(Place(config, url, key_file), work, far, json=json, definitions=True)
    if json:
        show.as_json(found)
    elif not any(found.values()):
        show.line("Nothing has changed.")
    else:
        for state in ("loaded", "waiting", "gone"):
            for one in found[state]:
                show.field(state, one)
        for one, problem in found["broken"].items():
            show.field("broken", f"{one}: {problem}")
    if found["broken"]:
        raise typer.Exit(1)


@app.command()
def new(name: Name, config: Config = None, json: Json = False) -> None:
    """Write a plugin that works: a manifest, a tool, settings and a test."""
    settings = load(config)
    if not is_name(name):
        raise usage(
            f"{name[:60]!r} names no plugin; use small letters, digits, _ and -, at most 40.",
            json=json,
        )
    if not settings.tools.plugins:
        raise usage("[tools] plugins names no folder to write to.", json=json)
    home, kept = settings.path(settings.tools.plugins[0]), settings.path(settings.plugins.settings)
    texts = {home / name / path: text for path, text in files(name).items()}
    texts[kept / f"{name}.json"] = '{\n  "enabled": true,\n  "custom_config": {}\n}\n'
    if not os.path.lexists(kept / ".gitignore"):
        # What is set on one machine is nobody else's.
        texts[kept / ".gitignore"] = "*\n"
    there = [one for one in (home / name, kept / f"{name}.json") if os.path.lexists(one)]
    if there:
        raise usage(f"{_near(there[0])} exists already; nothing was written.", json=json)
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise usage(f"{_near(path)} cannot be written ({error.strerror}).", json=json) from None
    written = [_near(path) for path in texts]
    if json:
        show.as_json({"name": name, "written": written})
        return
    for one in written:
        show.line(f"Wrote {one}")
    args = '{"name": "Ada"}'
    show.line(
        f"Test it:\npytest {_near(home / name)}\nUse it:\ntoolgate plugins approve {name}\n"
        f"toolgate call {tool_name(name)} --args '{args}'"
    )


_LEFT = "A server that runs may still have the version of {} in use that was agreed to: --url says."
_STATES = ("live", "waiting", "broken", "off")


def _near(path: Path) -> str:
    """As whoever sits here would write it."""
    return os.path.relpath(path)


def _chosen(found: dict[str, Any], fingerprint: str, shown: list[dict[str, Any]]) -> str:
    waiting = found["waiting"]
    if waiting is None:
        more = f" It cannot be used: {found['problem']}." if found["problem"] else ""
        raise InvalidRequest(
            f"Nothing of plugin {found['name']!r} waits for anybody; nothing was changed.{more}"
        )
    shown.append(waiting)
    return fingerprint or waiting["fingerprint"]


def _show(waiting: dict[str, Any]) -> None:
    what = "A new plugin" if waiting["is_new"] else "Another version"
    show.line(f"{what}, {waiting['version'] or 'without a version'} ({waiting['fingerprint']}):")
    for line in waiting["lines"]:
        show.line(f"  {line}")
