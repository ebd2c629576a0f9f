"""What a session and a turn did before, for policies that look back. Kept for a day."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from toolgate.call import Turn
from toolgate.caller import Caller
from toolgate.ledger.state import State

KEEP_NS = 24 * 3_600 * 1_000_000_000
# Of each tool, so many of its last calls that succeeded are looked at for their arguments.
LAST_CALLS = 100
MOST_VALUES = 20
Scalar = str | int | float | bool
_WORDS: Mapping[State, str] = {
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.STARTED: "in_flight",
    State.UNKNOWN: "unknown",
}


def session_of(caller: Caller) -> str:
    """The name that a session is kept by; empty where there is none.

    It is one user's with one agent, and with those that this agent hands its task on to: whoever
    learns a session's name cannot speak in it.
    """
    return _owned(caller, caller.session) if caller.session else ""


def turn_of(caller: Caller, turn: Turn | None) -> str:
    """The name that a turn is kept by, which is one user's with one agent in the same way."""
    return "" if turn is None else _owned(caller, turn.group)


def owner_of(caller: Caller) -> str:
    """One user with one agent, and with those that this agent hands its task on to."""
    first = caller.delegation[0].by if caller.delegation else caller.agent
    # Agents' names hold no slash, and users are counted, so that no two parts can be mistaken.
    return f"{first}/{len(caller.user)}/{caller.user}"


def _owned(caller: Caller, name: str) -> str:
    return f"{owner_of(caller)}/{name}"


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a session or a turn. `args` are plain values that are no secrets."""

    call_id: str
    tenant: str
    session: str
    turn_group: str
    tool: str
    state: State
    args: Mapping[str, Scalar]
    created_ns: int


class Sessions(Protocol):
    """Where it is kept. `begin` and `end` return when it is durable, for every node."""

    async def begin(self, past: Past) -> None:
        """Keep a call: one that has started, or one that is over."""
        ...

    async def end(self, call_id: str, state: State) -> None:
        """How a started call ended. One that is over stays as it is."""
        ...

    async def forget(self, call_id: str) -> None:
        """A started call was given up before it began: it is as if it had not been made."""
        ...

    async def of(self, caller: Caller, turn: Turn | None) -> dict[str, Any]:
        """What the caller's session did, and what the turn did, in the caller's tenant.

        A call that never ends, as when its process is killed, is in flight for a day.
        """
        ...


def told(
    counts: Iterable[tuple[str, State, int]], newest: Iterable[tuple[str, Mapping[str, Scalar]]]
) -> dict[str, Any]:
    """The words for policies: how often each tool ended how, and the arguments that succeeded.

    `newest` holds the calls that succeeded, newest first; of each argument the last distinct
    values are told, oldest first.
    """
    tools: dict[str, dict[str, Any]] = {}
    for tool, state, number in counts:
        of_tool = tools.setdefault(tool, _nothing())
        of_tool["calls"] += number
        of_tool[_WORDS[state]] += number
    # To Python, `True` is the same as 1: the type tells them apart.
    seen: dict[tuple[str, str], dict[tuple[type, Scalar], Scalar]] = {}
    for tool, args in newest:
        for name, value in args.items():
            values = seen.setdefault((tool, name), {})
            if len(values) < MOST_VALUES:
                values.setdefault((type(value), value), value)
    for (tool, name), values in seen.items():
        tools[tool]["args"][name] = list(reversed(values.values()))
    return {"calls": sum(of_tool["calls"] for of_tool in tools.values()), "tools": tools}


def _nothing() -> dict[str, Any]:
    return {"calls": 0, "succeeded": 0, "failed": 0, "in_flight": 0, "unknown": 0, "args": {}}
