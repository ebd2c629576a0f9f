"""Anthropic: `tool_use` blocks of a message's content."""

from typing import Any, cast

from toolgate.messages.said import Message, Said, call_id, calls_of, shown, tool_name
from toolgate.spec.document import measure

TOOL_USE = "tool_use"


def read_blocks(blocks: list[Any], most: int) -> Message:
    """Everything but uses of tools is left alone; those that the model's own server runs, too."""
    given = [(call_id(one.get("id"), "A use of a tool"), one) for one in blocks if is_use(one)]
    return Message(format="anthropic", calls=calls_of(given, _use, most))


def is_use(block: Any) -> bool:
    """Whether a block of a content is a use of a tool."""
    return isinstance(block, dict) and cast("dict[str, Any]", block).get("type") == TOOL_USE


def _use(id_: str, fields: dict[str, Any]) -> Said:
    try:
        tool = tool_name(fields.get("name"))
    except ValueError as error:
        return Said(id=id_, problem=str(error))
    given = fields.get("input")
    if not isinstance(given, dict):
        return Said(id=id_, tool=tool, problem=f"the input of {shown(tool)} must be an object")
    try:
        measure(cast("object", given))
    except ValueError as error:
        return Said(id=id_, tool=tool, problem=f"the input of {shown(tool)} {error}")
    return Said(id=id_, tool=tool, args=cast("dict[str, Any]", given))
