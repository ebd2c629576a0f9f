"""Specs in the words that planners read: OpenAI, Anthropic, MCP, and a prompt's tool section.

A planner sees a name, a description and a schema: never a provider's config.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from toolgate.spec.effect import Effect
from toolgate.spec.names import for_model
from toolgate.spec.tool import ToolSpec, definition

# What a service says of its answers it need not keep to, and a client takes any other for an error.
UNHELD = frozenset({"http"})


def openai(spec: ToolSpec) -> dict[str, Any]:
    """A function tool of the Chat Completions API."""
    return {
        "type": "function",
        "function": {
            "name": for_model(spec.name),
            "description": spec.description,
            "parameters": spec.input_schema.value(),
        },
    }


def responses(spec: ToolSpec) -> dict[str, Any]:
    """A function tool of the Responses API, which wants it flat."""
    return {"type": "function", **openai(spec)["function"]}


def anthropic(spec: ToolSpec) -> dict[str, Any]:
    """A tool of the Messages API."""
    return {
        "name": for_model(spec.name),
        "description": spec.description,
        "input_schema": spec.input_schema.value(),
    }


def mcp(spec: ToolSpec) -> dict[str, Any]:
    """A tool of `tools/list`; its hints follow from the effect policy."""
    tool: dict[str, Any] = {
        "name": for_model(spec.name),
        "title": spec.title,
        "description": spec.description,
        "inputSchema": spec.input_schema.value(),
    }
    if spec.output_schema is not None and spec.provider not in UNHELD:
        output = spec.output_schema.value()
        if isinstance(output, dict) and cast("dict[str, Any]", output).get("type") == "object":
            tool["outputSchema"] = output
    tool["annotations"] = {
        "readOnlyHint": spec.effect is Effect.PURE,
        "destructiveHint": spec.destructive or spec.effect is Effect.IRREVERSIBLE,
        "idempotentHint": spec.effect.repeatable,
    }
    return tool


def native(spec: ToolSpec) -> dict[str, Any]:
    """Everything a caller may know: the definition without what only its provider needs."""
    shown = definition(spec, but=("config", "provider", "origin", "enabled"))
    return {key: value for key, value in shown.items() if value not in ("", [], None)} | {
        "fingerprint": spec.fingerprint
    }


def prompt(specs: Iterable[ToolSpec]) -> str:
    """The tool section of a system prompt."""
    return "\n\n".join(_section(spec) for spec in specs)


def _section(spec: ToolSpec) -> str:
    schema = spec.input_schema.value()
    required = set(schema.get("required", ()))
    lines = [f"### {spec.name}", *([spec.description] if spec.description else [])]
    for name, property_ in schema.get("properties", {}).items():
        details = cast("dict[str, Any]", property_) if isinstance(property_, dict) else {}
        about, kind = details.get("description", ""), details.get("type", "any")
        need = "required" if name in required else "optional"
        lines.append(f"- {name} ({kind}, {need}){f': {about}' if about else ''}")
    return "\n".join(lines)


EACH: Mapping[str, Callable[[ToolSpec], dict[str, Any]]] = {
    "openai": openai,
    "anthropic": anthropic,
    "mcp": mcp,
    "toolgate": native,
    "responses": responses,
}
FORMATS = (*EACH, "prompt")


def export(specs: Iterable[ToolSpec], format: str = "toolgate") -> Any:  # noqa: A002
    """All of them in one format: a list, or a text for `prompt`."""
    if format == "prompt":
        return prompt(specs)
    if format not in EACH:
        raise ValueError(f"There is no format {format!r}. Use one of: {', '.join(FORMATS)}.")
    one = EACH[format]
    return [one(spec) for spec in specs]
