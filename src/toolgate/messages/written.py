"""A call that a model writes down as text: `{"tool_name": …, "tool_args": …}`, alone or at the end.

Models also quote what they read, and speak of calls that they do not make. So only a call that is
the whole text, or the last thing in it, is one: bare, or by itself in a fence.
"""

import re
from typing import Any, cast

from toolgate.messages.said import Message, Said, shown, tool_name
from toolgate.messages.tolerant import UnclearError, object_end, read_object
from toolgate.spec.document import measure

_NAME, _ARGS = "tool_name", "tool_args"
_HOW = 'send the call alone: one object, {"tool_name": NAME, "tool_args": {…}}, and nothing else'
# Other words for arguments: a model that uses them means something by it.
_OTHER = frozenset({"args", "arguments", "parameters", "tool_input", "input", "tool"})
_MOST_TEXT = 128 * 1024
# A fence that opens right before the call, and one anywhere.
_OPENS = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)[ \t]*+\w*+")
_FENCE = re.compile(r"^[ \t>]*+(?:`{3,}+|~{3,}+)", re.MULTILINE)
# What comes right behind one of these is quoted, or part of something.
_BINDS = tuple("\"'`“”‘’„«»([\\")  # noqa: RUF001  they are meant
_PAIRS = ("“”", "«»")


def read_text(text: str) -> Message:
    """The one call in a text; none where it mentions none; a problem where that is not clear."""
    if len(text) > _MOST_TEXT:
        return _unclear(f"the text has more than {_MOST_TEXT:,} characters")
    if _NAME not in text:
        return Message(format="text")
    try:
        at, end = _place(text)
        given = read_object(text[at:end])
        _check_alone(text[:at], text[end:])
    except ValueError as error:
        return _unclear(f"the call {error}")
    if _NAME not in given:
        return _unclear("the call stands inside of another object")
    return read_written(given)


def read_written(given: dict[str, Any]) -> Message:
    """The object itself. What else it holds, such as thoughts, is left alone."""
    try:
        measure(given)
        tool = tool_name(given.get(_NAME))
    except ValueError as error:
        return _unclear(f"the call {error}" if "tool's name" not in str(error) else str(error))
    args = given.get(_ARGS)
    if not isinstance(args, dict):
        return _unclear(f"{_ARGS} of {shown(tool)} must be an object")
    odd = sorted(given.keys() & _OTHER)
    if odd:
        return _unclear(f"it has {odd[0]!r} beside {_NAME} and {_ARGS}")
    return Message(format="text", calls=(Said(tool=tool, args=cast("dict[str, Any]", args)),))


def _place(text: str) -> tuple[int, int]:
    """Where the first object that mentions a call begins and ends."""
    at = text.find("{")
    while at >= 0:
        try:
            end = object_end(text, at)
        except UnclearError:
            if _begins_a_call(text, at):
                raise
            # Whatever follows may be part of what was opened here.
            raise ValueError("stands behind a bracket that cannot be read") from None
        if _NAME in text[at:end]:
            return at, end
        at = text.find("{", end)
    raise ValueError(f"cannot be found, only the word {_NAME}")


def _begins_a_call(text: str, at: int) -> bool:
    """Whether the name of a call comes before another bracket opens."""
    other = text.find("{", at + 1)
    return _NAME in text[at : other if other >= 0 else len(text)]


def _check_alone(before: str, after: str) -> None:
    """A `ValueError` unless prose, and nothing but prose, comes before it, and nothing after it."""
    after = after.strip()
    if _NAME in before or _NAME in after:
        raise ValueError("is not the only one that is spoken of")
    # One look at the last line: a search would begin anew at each.
    last = before.rstrip()
    line = last.rfind("\n") + 1
    opened = _OPENS.fullmatch(last, line)
    if opened is not None:
        before = before[:line]
        after = "" if after == opened[1] else after
    if after:
        raise ValueError("is not the last thing in the text")
    said = before.rstrip()
    open_ = (
        len(_FENCE.findall(before)) % 2
        or (said.count('"') % 2)
        or (_FENCE.sub("", said).count("`") % 2)
        or any(said.count(left) != said.count(right) for left, right in _PAIRS)
    )
    if open_ or said.endswith(_BINDS) or _is_quoted(before):
        raise ValueError("is quoted, or part of something")


def _is_quoted(before: str) -> bool:
    """Whether the line that it is on, or that it goes on from, is a quoted one."""
    lines = before.split("\n")
    return any(line.lstrip().startswith(">") for line in lines[-2:])


def _unclear(what: str) -> Message:
    return Message(format="text", calls=(Said(problem=f"{what}; {_HOW}"),))
