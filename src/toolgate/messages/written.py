"""A call that a model writes down as text: `{"tool_name": …, "tool_args": …}`, also in prose."""

from typing import Any, cast

from toolgate.messages.said import Message, Said, shown, tool_name
from toolgate.messages.tolerant import UnclearError, object_end, read_object
from toolgate.spec.document import measure

_NAME, _ARGS = "tool_name", "tool_args"
_HOW = 'write one object, {"tool_name": NAME, "tool_args": {…}}, and nothing like it beside'
# Other words for arguments: a model that uses them means something by it.
_OTHER = frozenset({"args", "arguments", "parameters", "tool_input", "input", "tool"})
_MOST_TEXT = 128 * 1024
# How often a text is read over, at the most: each bracket of a prose may have to be tried.
_MOST_READ = 2


def read_text(text: str) -> Message:
    """The one call in a text; none where it mentions none; a problem where that is not clear."""
    if len(text) > _MOST_TEXT:
        return _unclear(f"the text has more than {_MOST_TEXT:,} characters")
    if _NAME not in text:
        return Message(format="text")
    try:
        found = _objects(text)
        calls = [one for one in found if _NAME in one]
        if not calls:
            return _unclear(f"it mentions {_NAME} where no call can be read")
        if any(call != calls[0] for call in calls[1:]):
            return _unclear("it holds two calls that differ")
        return read_written(calls[0])
    except ValueError as error:
        return _unclear(f"the call {error}")


def read_written(given: dict[str, Any]) -> Message:
    """The object itself. What else it holds, such as thoughts, is left alone."""
    try:
        measure(given)
        tool = tool_name(given.get(_NAME))
    except ValueError as error:
        return _unclear(f"the call {error}" if "tool's name" not in str(error) else str(error))
    args = given.get(_ARGS)
    if not isinstance(args, dict):
        return _unclear(f"{_ARGS} of {shown(tool)} is an object")
    odd = sorted(given.keys() & _OTHER)
    if odd:
        return _unclear(f"it has {odd[0]!r} beside {_NAME} and {_ARGS}")
    return Message(format="text", calls=(Said(tool=tool, args=cast("dict[str, Any]", args)),))


def _objects(text: str) -> list[dict[str, Any]]:
    """Every object in a text, from the left; what stands inside of one belongs to it."""
    found: list[dict[str, Any]] = []
    at = text.find("{")
    wasted = 0
    while at >= 0:
        try:
            end = object_end(text, at)
        except UnclearError as error:
            wasted += error.at - at
            if wasted > _MOST_READ * len(text):
                raise ValueError("stands among too many brackets") from None
            # A brace in prose is none of ours, unless the call begins with it.
            if _begins_a_call(text, at):
                raise
            at = text.find("{", at + 1)
            continue
        part = text[at:end]
        if _NAME in part:
            found.append(read_object(part))
            if _NAME not in found[-1]:
                raise ValueError("stands inside of another object")
        at = text.find("{", end)
    return found


def _begins_a_call(text: str, at: int) -> bool:
    """Whether the name of a call comes before another bracket opens."""
    other = text.find("{", at + 1)
    return _NAME in text[at : other if other >= 0 else len(text)]


def _unclear(what: str) -> Message:
    return Message(format="text", calls=(Said(problem=f"{what}; {_HOW}"),))
