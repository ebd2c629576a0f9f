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
    # What is said in two places, which need not agree.
    twice: tuple[tuple[str, str], ...] = ()
    effect_given: bool = True


def to_native(given: Mapping[str, Any]) -> Native:
    """A tool's fields in the native layout. Odd values are left for the reader to refuse."""
    if _TYPED.intersection(given):
        native = _typed(given)
    elif _REGISTRY.intersection(given) and "input_schema" not in given:
        native = _registry(given)
    else:
        native = Native(dict(given), {})
    if "effect" in native.fields:
        return native
    if _only_reads(native.fields):
        native.fields["effect"] = "pure"
    return native._replace(effect_given=False)


class _Fields:
    """Native fields as they are collected; the first word on each stands."""

    def __init__(self, given: Mapping[str, Any], but: frozenset[str]) -> None:
        self.fields = {key: value for key, value in given.items() if key not in but}
        self.names: dict[str, str] = {}
        self.twice: list[tuple[str, str]] = []

    def put(self, native: str, shown: str, value: Any) -> None:
        if native in self.fields:
            self.twice.append((self.names.get(native, native), shown))
            return
        self.fields[native] = value
        self.names[native] = shown

    def native(self) -> Native:
        return Native(self.fields, self.names, tuple(self.twice))


def _typed(given: Mapping[str, Any]) -> Native:
    found = _Fields(given, _TYPED)
    if "tool_type" in given:
        found.put("provider", "tool_type", _provider(given["tool_type"]))
    if "implementation_config" in given:
        found.put("config", "implementation_config", _config(given["implementation_config"]))
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        found.put("metadata", "metadata", metadata)
        return found.native()
    for key, value in cast("dict[Any, Any]", metadata).items():
        native = "destructive" if key == "is_dangerous" else str(key)
        found.put(native, f"metadata.{key}", value)
    return found.native()


def _registry(given: Mapping[str, Any]) -> Native:
    found = _Fields(given, _REGISTRY)
    if "parameters" in given:
        found.put("input_schema", "parameters", _parameters(given["parameters"]))
    if "permission" in given:
        needed = given["permission"]
        found.put("permissions", "permission", [] if needed == "none" else [needed])
    config = {key: given[key] for key in ("module", "function") if key in given}
    if config:
        found.put("config", next(iter(config)), config)
    return found.native()


def _only_reads(fields: Mapping[str, Any]) -> bool:
    """Whether a tool that does not say its effect says by its side effects that it has none."""
    touched = fields.get("side_effects")
    reads = isinstance(touched, (list, tuple)) and list(cast("list[Any]", touched)) == ["read_only"]
    return reads and fields.get("destructive") is not True


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
    if "function_name" in config and "function" not in config:
        config["function"] = config.pop("function_name")
    return config
