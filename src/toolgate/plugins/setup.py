"""`plugin_settings/NAME.json`: what the operator sets of a plugin, and of its single tools."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import msgspec
import orjson

from toolgate.plugins.manifest import MOST_BYTES, Manifest, read_json, settings_schema
from toolgate.plugins.package import Refused
from toolgate.spec.schema import Schema
from toolgate.tenancy.names import nearest

# What of a setting's schema says nothing about which values fit.
_ASIDE = frozenset({"default", "description", "title", "examples"})
_MOST_TOLD = 200
_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_NO_OVERRIDES: Mapping[str, "Override"] = MappingProxyType({})


class Override(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is said of one tool. Care can be added, and none taken away."""

    enabled: bool | None = None
    description: str | None = None
    timeout: float | None = None
    output_limit: int | None = None
    rate_limit: str | dict[str, Any] | None = None
    requires_confirmation: bool | None = None
    requires_approval: bool | None = None
    custom_config: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    def fields(self) -> dict[str, Any]:
        """What takes the place of the manifest's own words."""
        said = cast("dict[str, Any]", msgspec.to_builtins(self))
        said.pop("custom_config", None)
        return said


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As the file has it. `server_overrides` is for servers that a portable plugin brings."""

    enabled: bool | None = None
    tool_overrides: Mapping[str, Override] = _NO_OVERRIDES
    custom_config: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    server_overrides: dict[str, dict[str, Any]] = msgspec.field(
        default_factory=dict[str, dict[str, Any]]
    )


NOTHING = Setup()


def read_setup(path: Path) -> Setup:
    """What is set, or nothing where there is no file; or `Refused`."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return NOTHING
    except OSError as error:
        raise Refused(f"its settings cannot be read ({error.strerror})") from None
    value = read_json(raw, path.name)
    try:
        return msgspec.convert(value, Setup)
    except msgspec.ValidationError as error:
        raise Refused(f"its settings file {path.name} does not fit: {error}") from None


def settings_of(manifest: Manifest, setup: Setup, tool: str) -> dict[str, Any]:
    """What a tool is handed: what is set of it, else of the plugin, else the defaults.

    `Refused` where that does not fit the plugin's schema.
    """
    schema = settings_schema(manifest.settings_schema)
    override = setup.tool_overrides.get(tool)
    own = {} if override is None else override.custom_config
    found = {**_defaults(schema), **setup.custom_config, **own}
    problems = schema.problems(found)
    if problems:
        told = dict.fromkeys(_told(schema, found, where) for where, _ in problems)
        raise Refused(
            f"its settings do not fit its settings_schema: {'; '.join(told)}; "
            f"correct custom_config in its settings file"
        )
    return found


def check(manifest: Manifest, setup: Setup) -> None:
    """`Refused` where tools are spoken of that there are none of, or care is taken away."""
    names = set(manifest.names)
    for name, one in setup.tool_overrides.items():
        if name not in names:
            raise Refused(f"its settings speak of a tool {name[:80]!r}, which it does not have")
        if one.requires_confirmation is False or one.requires_approval is False:
            raise Refused(f"its settings take care away from {name[:80]!r}; they can only add it")


def _defaults(schema: Schema) -> dict[str, Any]:
    properties = cast("dict[str, Any]", schema.value().get("properties", {}))
    return {
        name: one["default"]
        for name, one in properties.items()
        if isinstance(one, dict) and "default" in one
    }


def _told(schema: Schema, found: Mapping[str, Any], where: str) -> str:
    """What is wrong, by what the schema says: no value is repeated, which may be a secret."""
    document = schema.value()
    properties = cast("dict[str, Any]", document.get("properties", {}))
    name = where.lstrip("/").split("/")[0]
    if name in properties:
        said = properties[name]
        fields = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
        wanted = {key: value for key, value in fields.items() if key not in _ASIDE}
        given = _KINDS.get(type(cast("object", found.get(name))), "what is set")
        return f"{name}: {given} does not fit {orjson.dumps(wanted).decode()[:_MOST_TOLD]}"
    required = cast("list[str]", document.get("required", []))
    missing = [one for one in required if one not in found]
    unknown = [one for one in found if one not in properties]
    told = [f"{', '.join(missing)} is required and not set"] if missing else []
    if unknown:
        hints = "".join(nearest(one, properties) for one in unknown[:1])
        known = ", ".join(properties) or "none"
        told.append(f"{len(unknown)} of them not known to it (known: {known}.{hints})")
    return "; ".join(told) or "they do not fit as a whole"
