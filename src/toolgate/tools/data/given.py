"""JSON that callers give: as a value, or as a text that is read here."""

from typing import Any, cast

import orjson

from toolgate.errors import ToolError


def read(text: str, else_: str = "let json_parse mend it") -> Any:
    """The value of a JSON text; an error says where it goes wrong."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "recursion" in error.msg.lower():
            raise ToolError("The JSON is nested far too deep. Flatten it.") from None
        what = error.msg.split(":")[0].rstrip(".").lower()
        raise ToolError(
            f"The text is not JSON: {what} at line {error.lineno}, column {error.colno}. Correct "
            f"it there, or {else_}."
        ) from None


def value(given: Any) -> Any:
    """What is meant: a text is read as JSON, all else is it already."""
    return read(given) if isinstance(given, str) else given


def written(given: Any) -> str:
    """As JSON text."""
    return given if isinstance(given, str) else orjson.dumps(given).decode()


def count(found: Any, most: int) -> int:
    """How large a value is: four for each part, and characters. At most a little over `most`.

    What is in it many times counts as often, as it will be written.
    """
    total = 0
    waiting = [found]
    while waiting and total <= most:
        one = waiting.pop()
        total += 4
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, list):
            parts = cast("list[Any]", one)
            total += len(parts)
            waiting += parts[: most + 1]
        elif isinstance(one, dict):
            fields = cast("dict[str, Any]", one)
            total += sum(map(len, fields))
            waiting += fields.values()
    return total
