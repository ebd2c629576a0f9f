"""The data that the bundled policy knows. One of another shape, or of nearly the name, would
silently decide nothing, so it is refused.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, cast

# As near as a slip of the pen.
NEAR = 0.85
_Check = Callable[[Any], bool]


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, str) for each in cast("list[Any]", value)
    )


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _flag(value: Any) -> bool:
    """What is in it is not looked at: all but a literal true switches off."""
    return isinstance(value, (bool, dict))


def _permissions(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    said = cast("dict[str, Any]", value)
    others = said.keys() - {"can_add_tools"}
    slips = get_close_matches("can_add_tools", others, cutoff=NEAR)
    return isinstance(said.get("can_add_tools", True), bool) and not slips


def _each(check: _Check) -> _Check:
    def every(value: Any) -> bool:
        return isinstance(value, dict) and all(map(check, cast("dict[str, Any]", value).values()))

    return every


# How each looks, and an example for whoever wrote it differently.
_SHAPES: Mapping[str, tuple[_Check, str]] = MappingProxyType(
    {
        "tool_catalog": (_each(_flag), '{"TOOL": {"enabled": false}}'),
        "tenant_tool_flags": (_each(_each(_flag)), '{"TENANT": {"TOOL": {"enabled": false}}}'),
        "persona_tool_deny": (_each(_texts), '{"PERSONA": ["TOOL"]}'),
        "global_tool_deny": (_texts, '["TOOL"]'),
        "code_execution_restricted_tenants": (_texts, '["TENANT"]'),
        "restricted_arguments": (
            _each(_each(_each(_list))),
            '{"TENANT": {"TOOL": {"ARGUMENT": ["value"]}}}',
        ),
        "persona_permissions": (_each(_permissions), '{"PERSONA": {"can_add_tools": true}}'),
    }
)


def wrong_documents(data: Mapping[str, object]) -> Iterator[str]:
    """`data: message` for each that is not as the bundled policy reads it."""
    for name, value in data.items():
        if name in _SHAPES:
            check, example = _SHAPES[name]
            if not check(value):
                yield f"data: {name!r} is not of the shape that is read; write {example}."
        elif close := get_close_matches(name, _SHAPES, n=1, cutoff=NEAR):
            yield f"data: nothing reads {name!r}; did you mean {close[0]!r}?"
