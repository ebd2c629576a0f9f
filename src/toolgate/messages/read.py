"""A model's message, whoever's format it is in: its calls, or why they are not clear."""

from typing import Any, cast

from toolgate.messages.anthropic import TOOL_USE, is_use, read_blocks
from toolgate.messages.openai import read_completion, read_items, read_tool_calls
from toolgate.messages.said import Message, Said, unclear
from toolgate.messages.written import read_text, read_written

_FUNCTION_CALL = "function_call"


def read(message: object, *, most: int) -> Message:
    """The calls of a message, at most so many; a message of no known form is an `InvalidRequest`.

    A call that is not clear is there too, with its problem, so that the model can be told. Text of
    a message that has a format for calls is prose: only a text by itself is searched for one.
    The time that this takes is in proportion to the message.
    """
    dump = getattr(message, "model_dump", None)
    if callable(dump) and not isinstance(message, type):
        # The objects of both vendors' libraries.
        message = dump(mode="json")
    if isinstance(message, str):
        return read_text(message)
    if isinstance(message, list):
        return _listed(cast("list[Any]", message), most)
    if isinstance(message, dict):
        return _named(cast("dict[str, Any]", message), most)
    raise unclear(
        f"A model's message is an object, a list or a text, not {type(message).__name__}."
    )


def _named(message: dict[str, Any], most: int) -> Message:
    role = message.get("role", "assistant")
    if role != "assistant":
        raise unclear("Only what an assistant says is run: the role is another one.")
    content = message.get("content")
    has_blocks = isinstance(content, list) and bool(cast("list[Any]", content))
    if "choices" in message:
        return read_completion(message, most)
    if message.get("tool_calls") is not None or message.get(_FUNCTION_CALL) is not None:
        if has_blocks and any(map(is_use, cast("list[Any]", content))):
            raise unclear("The message calls tools in two formats at once.")
        return read_tool_calls(message, most)
    if isinstance(message.get("output"), list):
        return read_items(message["output"], most)
    if message.get("type") == _FUNCTION_CALL:
        return read_items([message], most)
    if has_blocks:
        return read_blocks(cast("list[Any]", content), most)
    if "tool_name" in message:
        return read_written(message)
    if "content" in message or "tool_calls" in message:
        return Message(format="openai")
    raise unclear("This is no message of a known form.")


def _listed(items: list[Any], most: int) -> Message:
    kinds = {
        cast("dict[str, Any]", one).get("type")
        for one in items
        if isinstance(one, dict) and _plain(one)
    }
    if TOOL_USE in kinds and _FUNCTION_CALL in kinds:
        raise unclear("The message calls tools in two formats at once.")
    if TOOL_USE in kinds:
        return read_blocks(items, most)
    if kinds - {None}:
        return read_items(items, most)
    raise unclear("A list holds the blocks of a message, or the items of an answer.")


def _plain(one: Any) -> bool:
    return isinstance(one.get("type"), str)


def misread(call: Said) -> str:
    """What a model is told of a call that is not clear."""
    return f"This call is not clear and did not run: {call.problem}. Correct it and call again."
