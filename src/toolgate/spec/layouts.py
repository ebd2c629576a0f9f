"""Three ways to write a tool down, one way to read it.

native      `input_schema`, `provider`, `config`, `effect` …
typed       `tool_type`, `implementation_config`, `metadata`
registry    `category`, `parameters`, `side_effects`, `destructive`, `module`, `function`

Each becomes the native layout first. `names` keeps what the author wrote, for the error messages.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

_TYPED = frozenset({"tool_type", "implementation_config", "metadata"})
_REGISTRY = frozenset({"parameters", "module", "function", "permission"})
_PROVIDERS = {"sandbox": "shell", "native": "python", "internal": "python"}


class Native(NamedTuple):
    """A tool in the native layout, and how its author named the fields."""

    fields: dict[str, Any]
    names: Mapping[str, str]


def to_native(given: Mapping[str, Any]) -> Native:
    """A tool's fields in the native layout. Odd values are left for the reader to refuse."""
    if _TYPED.intersection(given):
        return _typed(given)
    if _REGISTRY.intersection(given) and "input_schema" not in given:
        return _registry(given)
    return Native(dict(given), {})


def _typed(given: Mapping[str, Any]) -> Native:
    fields = {key: value for key, value in given.items() if key not in _TYPED}
    names = {"provider": "tool_type", "config": "implementation_config"}
    if "tool_type" in given:
        fields["provider"] = _provider(given["tool_type"])
    if "implementation_config" in given:
        fields["config"] = _config(given["implementation_config"])
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        fields["metadata"] = metadata
        return Native(fields, names)
    for key, value in cast("dict[str, Any]", metadata).items():
        native = "destructive" if key == "is_dangerous" else key
        fields.setdefault(native, value)
        names[native] = f"metadata.{key}"
    return Native(fields, names)


def _registry(given: Mapping[str, Any]) -> Native:
    fields = {key: value for key, value in given.items() if key not in _REGISTRY}
    names = {"config": "module"}
    if "parameters" in given:
        fields["input_schema"] = _parameters(given["parameters"])
        names["input_schema"] = "parameters"
    if "permission" in given:
        needed = given["permission"]
        fields["permissions"] = [] if needed == "none" else [needed]
        names["permissions"] = "permission"
    config = {key: given[key] for key in ("module", "function") if key in given}
    if config:
        fields.setdefault("config", config)
    if "effect" not in given:
        fields.update(_implied(given))
    return Native(fields, names)


def _implied(given: Mapping[str, Any]) -> dict[str, Any]:
    """This layout has no word for the effect; its side effects tell when a tool only reads."""
    touched = given.get("side_effects")
    reads = isinstance(touched, list) and cast("list[Any]", touched) == ["read_only"]
    return {"effect": "pure"} if reads and given.get("destructive") is not True else {}


def _parameters(value: Any) -> Any:
    """A JSON Schema as it is, or a map of parameters that each say whether they are required."""
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    if given.get("type") == "object" or "$ref" in given:
        return given
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in given.items():
        if not isinstance(parameter, dict):
            properties[name] = parameter
            continue
        schema = dict(cast("dict[str, Any]", parameter))
        needed = schema.get("required", True)
        if isinstance(needed, bool):
            schema.pop("required", None)
            if needed and "default" not in schema:
                required.append(name)
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required}


def _provider(value: Any) -> Any:
    return _PROVIDERS.get(value, value) if isinstance(value, str) else value


def _config(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    config = dict(cast("dict[str, Any]", value))
    if "function_name" in config:
        config.setdefault("function", config.pop("function_name"))
    return config
