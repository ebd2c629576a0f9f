"""`manifest.json`: what a plugin is, what it needs, what can be set, and its tools."""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from toolgate.executor.provider import KINDS
from toolgate.plugins.package import Refused
from toolgate.spec.schema import Schema
from toolgate.text.document import read
from toolgate.text.refusal import Refusal

Json = dict[str, Any]
FILE = "manifest.json"
MOST_BYTES = 1024 * 1024
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?\Z")
_VERSIONS = frozenset({"1", "1.0"})
_DEPENDENCY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:[<>=!~]=?.*)?\Z")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z")


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where something is in the plugin's folder."""

    module: str
    function: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As it is written. A tool has the fields of a tool file beside its module and function."""

    schema_version: str
    name: str
    tools: list[dict[str, Any]]
    version: str = ""
    description: str = ""
    enabled: bool = True
    dependencies: list[str] = msgspec.field(default_factory=list[str])
    settings_schema: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    # By the kind that each runs, what makes it out of the plugin's settings.
    providers: dict[str, Code] = msgspec.field(default_factory=dict[str, Code])

    @property
    def names(self) -> list[str]:
        """What its tools are called."""
        return [str(tool.get("name")) for tool in self.tools]


def read_manifest(raw: bytes, folder: str) -> Manifest:
    """The manifest of the plugin in that folder, or `Refused`."""
    value = read_json(raw, FILE)
    try:
        found = msgspec.convert(value, Manifest)
    except msgspec.ValidationError as error:
        raise Refused(f"{FILE} {_told(error)}") from None
    if found.schema_version not in _VERSIONS:
        raise Refused(
            f'{FILE} has schema_version {found.schema_version[:20]!r}; this version reads "1.0"'
        )
    if found.name != folder:
        raise Refused(
            f"{FILE} has the name {found.name[:64]!r}; a plugin is called as its folder is"
        )
    wrong = [one for one in found.dependencies if not _DEPENDENCY.match(one)]
    if wrong:
        raise Refused(f"{FILE} has the dependency {wrong[0][:60]!r}, which names no package")
    for tool in found.tools:
        _check(tool)
    for kind, one in found.providers.items():
        if not _KIND.match(kind) or not (_CODE.match(one.module) and _CODE.match(one.function)):
            raise Refused(
                f"provider {kind[:80]!r} of {FILE} has no name in small letters, or no module and "
                "function that Python could load"
            )
        if kind in KINDS:
            raise Refused(f"provider {kind!r} of {FILE} is called as one of toolgate's; rename it")
    return found


def read_json(raw: bytes, file: str) -> Any:
    """A JSON file of a plugin, or `Refused`."""
    try:
        return read(raw, is_json=True, most=MOST_BYTES).value
    except Refusal as refusal:
        line = f", line {refusal.line}" if refusal.line else ""
        raise Refused(f"{file}{line} {refusal.message}") from None


def settings_schema(given: Mapping[str, Any]) -> Schema:
    """What can be set, as a schema: a map of settings, or a JSON Schema of an object."""
    document: dict[str, Any] = {"additionalProperties": False}
    if given.get("type") == "object" and isinstance(given.get("properties", {}), dict):
        document |= given
    else:
        required = [name for name, one in given.items() if _is_required(one)]
        properties = {name: _without_mark(one) for name, one in given.items()}
        document |= {"type": "object", "properties": properties, "required": required}
    try:
        return Schema.of(document)
    except ValueError as error:
        raise Refused(f"settings_schema of {FILE} {error}") from None


def _is_required(setting: Any) -> bool:
    return isinstance(setting, dict) and cast("Json", setting).get("required") is True


def _without_mark(setting: Any) -> Any:
    """Each says for itself whether it has to be set; a schema says it of all of them."""
    if not isinstance(setting, dict):
        return setting
    fields = cast("Json", setting)
    return {key: one for key, one in fields.items() if key != "required" or type(one) is not bool}


def _check(tool: Mapping[str, Any]) -> None:
    """What a tool file's reader does not look at: where the code is."""
    name = str(tool.get("name"))[:80]
    for field in ("module", "function"):
        given = tool.get(field)
        if not isinstance(given, str) or not _CODE.match(given):
            raise Refused(f"tool {name!r} of {FILE} has no {field} that Python could load")
    for field in ("config", "provider", "implementation_config", "tool_type"):
        if field in tool:
            raise Refused(f"tool {name!r} of {FILE} has a {field}: its module and function run it")


def _told(error: msgspec.ValidationError) -> str:
    text = str(error)
    what, at, where = text.partition(" - at ")
    place = where.strip("`").removeprefix("$").lstrip(".") if at else ""
    said = f"{what[0].lower()}{what[1:]}".replace("`", "'")
    return f"does not fit: {said}" + (f" at {place}" if place else "")
