"""What a model said: the calls in its message, each as it was meant or with why it is not clear."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from toolgate.errors import InvalidRequest

Format = Literal["openai", "responses", "anthropic", "text"]
MAX_TEXT = 1024 * 1024
_LONGEST_ID = 256
_LONGEST_NAME = 256
_SHOWN = 60
# Of more calls than are run so many times as many are answered, and looked at.
_ANSWERED = 10
Given = tuple[str, Any]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One call. Where `problem` says something, it must not run: the model is told instead."""

    id: str = ""
    tool: str = ""
    args: dict[str, Any] = {}
    problem: str = ""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of a message, in their order, and whose words it is written in."""

    format: Format
    calls: tuple[Said, ...] = ()


def unclear(what: str) -> InvalidRequest:
    """A message that cannot even be answered in its own format."""
    return InvalidRequest(
        f"{what} Nothing ran: hand over a model's message as its API gave it, or its text."
    )


def call_id(given: object, what: str) -> str:
    """The id that the answer has to name."""
    if type(given) is not str or not 0 < len(given) <= _LONGEST_ID:
        raise unclear(f"{what} has no id to answer to: a text of 1 to {_LONGEST_ID} characters.")
    return given


def tool_name(given: object) -> str:
    """The tool's name; a `ValueError` says what is wrong with it."""
    if type(given) is not str or not 0 < len(given) <= _LONGEST_NAME:
        raise ValueError(f"the tool's name is a text of 1 to {_LONGEST_NAME} characters")
    return given


def shown(text: str) -> str:
    """A model's own words, short enough to be repeated to it."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def calls_of(given: list[Given], read: Callable[[str, Any], Said], most: int) -> tuple[Said, ...]:
    """The calls of a message, of which only the ids are known; too many are not even read."""
    ids = dict.fromkeys(id_ for id_, _ in given)
    count = len(ids) if len(ids) > most else len(given)
    if len(ids) <= most and count <= _ANSWERED * most:
        return _once([read(id_, one) for id_, one in given])
    told = f"the message has {count} calls, and at most {most} are run; send fewer"
    return tuple(Said(id=id_, problem=told) for id_ in list(ids)[: _ANSWERED * most])


def _once(calls: list[Said]) -> tuple[Said, ...]:
    """Each id once. Two that differ are neither: which one is meant cannot be told."""
    kept: dict[str, Said] = {}
    for call in calls:
        other = kept.get(call.id)
        if other is None:
            kept[call.id] = call
        elif other != call:
            told = "two different calls have this id; send each with an id of its own"
            kept[call.id] = Said(id=call.id, tool=other.tool, problem=told)
    return tuple(kept.values())
