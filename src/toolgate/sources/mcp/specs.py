"""From what a server says about a tool to a spec: its words are hints, the operator's hold."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from toolgate.settings.outward import McpServer
from toolgate.sources.mcp import naming
from toolgate.sources.mcp.overlay import ON_ERROR, Overlay
from toolgate.spec import fields
from toolgate.spec.checks import contradictions
from toolgate.spec.document import Document
from toolgate.spec.effect import CallerKind, Effect, Permission, SideEffect
from toolgate.spec.schema import Schema
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.upstreams.suspicion import visible

PROVIDER = "mcp"
_MOST_DESCRIPTION = 20_000
_MOST_TITLE = 200
_RESOURCE = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "Which one."}},
    "required": ["uri"],
    "additionalProperties": False,
}
_PROMPT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Which one."},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
# What stands in the catalog for what a server has beside tools.
STAND_INS: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "resources": ("read_resource", "Read a resource of the MCP server {}.", _RESOURCE),
    "prompts": ("get_prompt", "Get a prompt of the MCP server {}.", _PROMPT),
}
# What those are called before a server's prefix stands before them.
SHORT = tuple(short for short, _about, _schema in STAND_INS.values())


def spec_of(
    server: str, settings: McpServer, definition: Mapping[str, Any], overlay: Overlay
) -> ToolSpec:
    """The spec of a tool, or a `ValueError` that says what is wrong with it."""
    own = str(definition["name"])
    said, line = overlay.about(own)
    config: dict[str, Any] = {"server": server, "tool": own}
    if ON_ERROR in said:
        config[ON_ERROR] = said[ON_ERROR]
    given: dict[str, Any] = {
        "name": naming.ours(naming.prefix_of(server, settings.prefix), own),
        "description": _cut(definition.get("description"), _MOST_DESCRIPTION),
        "display_name": _cut(_title(definition), _MOST_TITLE),
        "input_schema": _taken(definition.get("inputSchema")),
        "output_schema": _given(definition.get("outputSchema")),
        "provider": PROVIDER,
        "config": Document.of(config),
        "timeout": float(settings.timeout),
        "origin": Origin(PROVIDER, server),
        **_hinted(settings, _annotations(definition)),
    }
    return _overlaid(given, said, overlay.file, line)


def held(server: str, settings: McpServer, own: str, reason: str) -> ToolSpec:
    """What stands in the catalog for a tool that waits: its name and why, no word of its own."""
    return ToolSpec(
        name=naming.ours(naming.prefix_of(server, settings.prefix), own),
        description="It waits for an operator.",
        provider=PROVIDER,
        config=Document.of({"server": server, "tool": own, "held": reason}),
        requires_confirmation=True,
        origin=Origin(PROVIDER, server),
    )


def stand_in(
    server: str, settings: McpServer, kind: str, overlay: Overlay, taken: Mapping[str, Any]
) -> ToolSpec:
    """The pure tool that stands for a server's resources, or for its prompts."""
    short, about, schema = STAND_INS[kind]
    prefix = naming.prefix_of(server, settings.prefix)
    name = f"{short}_of_{server}" if not prefix else prefix + short
    if name in taken:
        # A tool of the server has that name; nobody takes it from there.
        name = f"{prefix}{short}_of_{server}"
    said, line = overlay.about(short)
    given: dict[str, Any] = {
        "name": name,
        "description": about.format(server),
        "input_schema": Schema.of(schema),
        "provider": PROVIDER,
        "config": Document.of({"server": server, "kind": kind}),
        "effect": Effect.PURE,
        "timeout": float(settings.timeout),
        "origin": Origin(PROVIDER, server),
        **_reach(settings, {}),
    }
    return _overlaid(given, said, overlay.file, line)


def _overlaid(
    given: dict[str, Any], said: Mapping[str, Any], file: str, line: int | None
) -> ToolSpec:
    said = {field: value for field, value in said.items() if field != ON_ERROR}
    if "effect" in said:
        # Whoever says what it does has the say: what was assumed of it does not hold any more.
        given |= {"requires_confirmation": False, "destructive": False}
    spec = ToolSpec(**{**given, **said})
    for found in contradictions(spec, effect_given=True):
        place = file if line is None else f"{file}:{line}"
        raise ValueError(f"{place}: {found.field} {found.message}. {found.write}")
    return spec


def _hinted(settings: McpServer, hints: Mapping[str, Any]) -> dict[str, Any]:
    """What its annotations say is believed where the operator says so, and read with care: what is
    not said may destroy something.
    """
    hints = hints if settings.trust == "hints" else {}
    found: dict[str, Any] = _reach(settings, hints)
    if hints.get("readOnlyHint") is True:
        return found | {
            "effect": Effect.PURE,
            "allowed_callers": (CallerKind.DIRECT, CallerKind.CHAIN),
        }
    is_harmless = hints.get("destructiveHint") is False
    return found | {
        "effect": Effect.IDEMPOTENT if hints.get("idempotentHint") is True else Effect.IRREVERSIBLE,
        "destructive": hints.get("destructiveHint") is True,
        "requires_confirmation": not is_harmless,
    }


def _reach(settings: McpServer, hints: Mapping[str, Any]) -> dict[str, Any]:
    """What it may touch: a server can reach the web unless it has no way, or is believed not to."""
    is_closed = bool(settings.command) and not settings.hosts
    if is_closed or hints.get("openWorldHint") is False:
        return {"side_effects": (), "permissions": ()}
    return {
        "side_effects": (SideEffect.NETWORK_ACCESS,),
        "permissions": (Permission.NETWORK,),
    }


def _annotations(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    found = definition.get("annotations")
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _title(definition: Mapping[str, Any]) -> object:
    return definition.get("title") or _annotations(definition).get("title")


def _cut(value: object, most: int) -> str:
    """A text of others, in what a spec takes; what nobody would see is written out."""
    text = visible(value) if isinstance(value, str) else ""
    return text if len(text) <= most else text[: most - 1] + "…"


def _taken(schema: object) -> Schema:
    """As it was sent. Without a type it can only mean an object: arguments have names."""
    if schema is None:
        schema = {}
    if isinstance(schema, dict) and "type" not in schema:
        schema = {"type": "object", **cast("dict[str, Any]", schema)}
    try:
        return fields.input_schema(schema)
    except ValueError as error:
        raise ValueError(f"its inputSchema {error}") from None


def _given(schema: object) -> Schema | None:
    if schema is None:
        return None
    try:
        return Schema.of(schema)
    except ValueError as error:
        raise ValueError(f"its outputSchema {error}") from None


def renamed(spec: ToolSpec, name: str) -> ToolSpec:
    """The same under another name."""
    return msgspec.structs.replace(spec, name=name)
