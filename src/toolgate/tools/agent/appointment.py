"""Something that an agent has scheduled, as it is kept."""

from typing import Any

import msgspec
import orjson

from toolgate import clock
from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.ledger.history import owner_of
from toolgate.tools.agent.schedule import Schedule

_LONGEST = 20_000
_HOW = (
    'Write a task as JSON, {"tool": "NAME", "args": {…}}, to have a tool called; any other text '
    "is told to you when it is time."
)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A call, or a text that the agent is told."""

    tool: str = ""
    args: dict[str, Any] = {}
    text: str = ""

    @property
    def shown(self) -> str:
        """In a line."""
        if not self.tool:
            return self.text
        return f"{self.tool} {orjson.dumps(self.args).decode()}"


class Appointment(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its time, with whoever asked for it.

    `held_ns`: until then one node is at it. `tries` and `refusals` are those in a row.
    """

    id: str
    task: Task
    schedule: Schedule
    written: str
    caller: Caller
    next_ns: int
    held_ns: int = 0
    runs: int = 0
    tries: int = 0
    refusals: int = 0
    last_ns: int = 0
    last: str = ""

    @property
    def owner(self) -> str:
        """Whose it is."""
        return owner_of(self.caller)

    def told(self) -> dict[str, Any]:
        """As its owner reads it."""
        return {
            "id": self.id,
            "task": self.task.shown,
            "schedule": self.written,
            "repeats": self.schedule.repeats,
            "next": _moment(self.next_ns),
            "runs": self.runs,
            "last": _moment(self.last_ns) if self.last_ns else None,
            "last_outcome": self.last or None,
        }


def read_task(text: str) -> Task:
    """What a caller wrote: what begins like an object is meant to be a call."""
    given = text.strip()
    if not given or len(given) > _LONGEST:
        raise ToolError(f"The task is empty or longer than {_LONGEST:,} characters. {_HOW}")
    if not given.startswith("{"):
        return Task(text=given)
    try:
        task = msgspec.convert(orjson.loads(given), _Call)
    except (orjson.JSONDecodeError, msgspec.ValidationError):
        raise ToolError(f"The task looks like JSON and names no call. {_HOW}") from None
    if not task.tool:
        raise ToolError(f"The task names no tool. {_HOW}")
    return Task(tool=task.tool, args=task.args)


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    tool: str
    args: dict[str, Any] = {}


def _moment(unix_ns: int) -> str:
    return clock.moment_of(unix_ns).isoformat(timespec="seconds")
