"""The portable format, Agent Plugins 1.0: `plugin.json`, and the MCP servers of `mcp.json`."""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec
from pydantic import ValidationError

from toolgate.plugins.manifest import read_json
from toolgate.plugins.package import PORTABLE, Package, Refused
from toolgate.settings.outward import McpServer, is_server_name

FILE = PORTABLE
SERVERS = "mcp.json"
_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
_SERVERS_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
_NAME = re.compile(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?\Z")
_FIELDS = frozenset(
    {
        "$schema",
        "name",
        "version",
        "description",
        "author",
        "homepage",
        "repository",
        "license",
        "keywords",
        "extensions",
    }
)
_ROOT, _DATA = "PLUGIN_ROOT", "PLUGIN_DATA"
_PLACE = re.compile(rf"\$\{{({_ROOT}|{_DATA})\}}")
_DIGITS = re.compile(r"-[0-9a-f]{8}\Z")
_ADDED = frozenset({"env", "readable", "writable", "hosts"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
# A program begins in the folder that its entry names; a sandbox begins elsewhere.
_GO = 'cd "$1" && shift && exec "$@"'


class Author(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who wrote it."""

    name: str = ""
    email: str = ""
    url: str = ""


class Portable(msgspec.Struct, frozen=True):
    """What `plugin.json` says of the plugin itself, and what was odd about it."""

    name: str
    version: str = ""
    description: str = ""
    author: Author = Author()
    homepage: str = ""
    repository: str = ""
    license: str = ""
    keywords: list[str] = msgspec.field(default_factory=list[str])
    notes: tuple[str, ...] = ()


class _Stdio(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="stdio"):
    command: str
    args: list[str] = msgspec.field(default_factory=list[str])
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    cwd: str = "./"


class _Http(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="streamable-http"):
    url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class _Sse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="sse"):
    url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class Found(msgspec.Struct, frozen=True):
    """The servers that can be used, by their names here, and why others are not."""

    servers: Mapping[str, McpServer]
    notes: tuple[str, ...] = ()


def read_portable(raw: bytes, folder: str) -> Portable:
    """What the manifest says, or `Refused`. Unknown fields are told, and mean nothing."""
    value = read_json(raw, FILE)
    if not isinstance(value, dict):
        raise Refused(f"{FILE} holds no object")
    fields = cast("dict[str, Any]", value)
    if fields.get("$schema") != _SCHEMA:
        raise Refused(_wanted(FILE, fields.get("$schema"), _SCHEMA))
    notes = [f"{FILE}: {name[:60]!r} is no field of it" for name in fields if name not in _FIELDS]
    if not isinstance(fields.get("extensions", {}), dict):
        notes.append(f"{FILE}: extensions is no object")
    said = {name: one for name, one in fields.items() if name in _FIELDS - {"$schema"}}
    said.pop("extensions", None)
    try:
        found = msgspec.convert(said, Portable)
    except msgspec.ValidationError as error:
        raise Refused(f"{FILE} does not fit: {error}") from None
    if not _NAME.match(found.name):
        raise Refused(f"{FILE} has no name as plugins have: small letters, digits, - and .")
    if found.name != folder:
        raise Refused(f"{FILE} has the name {found.name!r}; a plugin is called as its folder is")
    return msgspec.structs.replace(found, notes=tuple(notes))


def skills(package: Package) -> list[str]:
    """What it tells agents to do. That is their clients' to load, and none of a tool's."""
    parts = (path.split("/") for path in package.files)
    return sorted({one[1] for one in parts if one[0] == "skills" and one[2:] == ["SKILL.md"]})


class Places(NamedTuple):
    """For programs: where their code lies, as it was agreed to, and where they may keep things."""

    code: Path
    data: Path


def read_servers(
    package: Package, places: Callable[[], Places], overrides: Mapping[str, Mapping[str, Any]]
) -> Found:
    """The servers of `mcp.json`, each by itself: one that is wrong keeps no other from being used.

    `places` are made where a program needs them. `overrides`: what the operator says of a server,
    in the words of the settings: hosts, secrets_env, trust.
    """
    raw = package.files.get(SERVERS)
    if raw is None:
        return Found({})
    try:
        entries = _entries(read_json(raw, SERVERS))
    except Refused as error:
        return Found({}, (f"its MCP servers are left out: {error}",))
    found: dict[str, McpServer] = {}
    notes: list[str] = []
    for own, entry in entries.items():
        name = server_name(package.root.name, own)
        try:
            found[name] = _server(package, entry, places, overrides.get(own, {}))
        except Refused as error:
            notes.append(f"server {own[:60]!r} of {SERVERS} is left out: {error}")
    unknown = sorted(set(overrides) - set(entries))
    notes += [f"its settings speak of a server {one[:60]!r}, which it lacks" for one in unknown]
    return Found(found, tuple(notes))


def server_name(plugin: str, own: str) -> str:
    """What a plugin's server is called here: no two of them meet under one name.

    A portable plugin has no _ in its name, so that the first one parts it from the server's.
    """
    plain = f"{plugin}_{own}"
    if is_server_name(plain) and not _DIGITS.search(plain):
        return plain
    stem = re.sub(r"[^a-z0-9_-]+", "-", plain.lower()).strip("-_")
    digest = hashlib.sha256(f"{plugin}/{own}".encode()).hexdigest()[:8]
    return f"{stem[:31].strip('-_')}-{digest}"


def _entries(value: Any) -> dict[str, Any]:
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if set(fields) != {"$schema", "mcpServers"} or not isinstance(fields["mcpServers"], dict):
        raise Refused(
            f"{SERVERS} has $schema and mcpServers, and nothing else: "
            f'{{"$schema": "{_SERVERS_SCHEMA}", "mcpServers": {{}}}}'
        )
    if fields["$schema"] != _SERVERS_SCHEMA:
        raise Refused(_wanted(SERVERS, fields["$schema"], _SERVERS_SCHEMA))
    return cast("dict[str, Any]", fields["mcpServers"])


def _wanted(file: str, given: Any, wanted: str) -> str:
    has = "has no $schema" if given is None else "is of a version that is not read here"
    return f'{file} {has}; write "$schema": "{wanted}"'


def _server(
    package: Package, entry: Any, places: Callable[[], Places], override: Mapping[str, Any]
) -> McpServer:
    if not isinstance(entry, dict) or "type" not in entry:
        raise Refused(
            'it says no type; write "type": "stdio" for a program (with command and args), or '
            '"type": "streamable-http" for a server (with url)'
        )
    try:
        said: _Stdio | _Http | _Sse = msgspec.convert(entry, _Stdio | _Http | _Sse)
    except msgspec.ValidationError as error:
        raise Refused(f"it does not fit: {error}") from None
    if isinstance(said, _Sse):
        raise Refused("it speaks HTTP+SSE, which is not spoken here")
    is_program = isinstance(said, _Stdio)
    fields = _program(package, said, places()) if is_program else _address(said)
    try:
        return McpServer.model_validate(_overridden(fields, override))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)
        told = [": ".join((*map(str, one["loc"]), one["msg"])) for one in wrong]
        raise Refused(f"it cannot be used: {'; '.join(told[:3])}") from None


def _overridden(fields: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The operator's word stands; what it may read, write and reach is added to."""
    found = {**fields, **said}
    for name in _ADDED & fields.keys() & said.keys():
        own, more = fields[name], said[name]
        if isinstance(own, dict) and isinstance(more, dict):
            found[name] = {**own, **more}
        elif isinstance(own, tuple) and isinstance(more, list):
            found[name] = (*own, *more)
    return found


def _program(package: Package, said: _Stdio, given: Places) -> dict[str, Any]:
    places = {_ROOT: str(given.code), _DATA: str(given.data)}
    if reserved := sorted({_ROOT, _DATA} & set(said.env)):
        raise Refused(f"its env sets {reserved[0]}, which is given to it")
    command = said.command
    if command.startswith("./"):
        if command.removeprefix("./") not in package.files:
            raise Refused(f"its command {command[:80]!r} is no file of the plugin")
        command = f"{places[_ROOT]}/{command.removeprefix('./')}"
    elif "/" in command or not command.strip() or command.split() != [command]:
        raise Refused("its command is no single name, and no path that begins with ./")
    return {
        "command": ("sh", "-c", _GO, "sh", _folder(said.cwd, places), command),
        "args": tuple(_expanded(one, places) for one in said.args),
        # The fingerprint makes it another server when its files are others: it is started anew.
        "env": {
            **{name: _expanded(one, places) for name, one in said.env.items()},
            **places,
            "TOOLGATE_PLUGIN_FINGERPRINT": package.fingerprint,
        },
        "readable": (places[_ROOT],),
        "writable": (places[_DATA],),
        # Its code is agreed to as a whole, and with it what it says of its tools.
        "pin": False,
    }


def _address(said: _Http) -> dict[str, Any]:
    parts = urlsplit(said.url)
    is_local = (parts.hostname or "") in _LOCAL
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise Refused("its url is not https, and not on this machine")
    if parts.username or parts.password or parts.fragment:
        raise Refused("its url has a user or a fragment")
    if said.headers:
        raise Refused(
            "it has fixed headers, which are not sent here; name variables in server_overrides: "
            "headers_env"
        )
    return {"url": said.url}


def _folder(given: str, places: Mapping[str, str]) -> str:
    """The folder a program begins in, which lies in the plugin's or in that of its data."""
    if given.startswith("./"):
        given = f"${{{_ROOT}}}/{given.removeprefix('./')}"
    found = _PLACE.match(given)
    if found is None or given[found.end() :][:1] not in {"", "/"}:
        raise Refused("its cwd does not begin with ./, ${PLUGIN_ROOT} or ${PLUGIN_DATA}")
    home = Path(places[found[1]])
    place = (home / given[found.end() :].lstrip("/")).resolve()
    if not place.is_relative_to(home):
        raise Refused("its cwd leads outside")
    return str(place)


def _expanded(text: str, places: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda found: places[found[1]], text)
