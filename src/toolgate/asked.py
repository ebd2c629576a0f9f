"""How a call is asked for, beside its tool and arguments; and whoever asked, while it runs."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from toolgate.spec.effect import CallerKind


class Line(Protocol):
    """Whoever called, as long as the call runs: what its tool can tell them, and ask."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What they can be asked: `elicitation`, `sampling`, `roots`."""
        ...

    @property
    def wants_progress(self) -> bool:
        """Whether anybody hears how far it has come."""
        ...

    @property
    def log_level(self) -> str:
        """From which level on anybody hears its log; empty where nobody does."""
        ...

    def progress(self, done: float, total: float | None, message: str) -> None:
        """How far it has come."""
        ...

    def log(self, level: str, message: Any) -> None:
        """Something worth knowing on the way."""
        ...

    def queued(self, call_id: str) -> None:
        """It waits for a worker: whoever loses sight of it can ask for it by this id."""
        ...

    async def ask(self, questions: Mapping[str, "Question"]) -> Mapping[str, Any]:
        """Their answers, by name. `InputNeeded` ends the call where they answer by calling again,
        `ToolError` where they cannot be asked.
        """
        ...


class Question(msgspec.Struct, frozen=True):
    """What a tool asks on its way, in the words of MCP: `elicitation/create` and what it takes."""

    method: str
    params: dict[str, Any]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What a planner said about a call. It is carried into the log; `critical` stops a batch."""

    when: Literal["before_step", "during_step", "after_step"] = "during_step"
    rule: str = ""
    step: str = ""
    critical: bool = True


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How a call was asked for, beside the tool and its arguments."""

    # The caller's own idempotency key, and how long to wait for a twin or a person.
    key: str = ""
    wait_s: float | None = None
    kind: CallerKind = CallerKind.DIRECT
    chain: str = ""
    chain_index: int = 0
    planned: Planned | None = None
    # The call that an operator runs again, or that this one takes back.
    again_of: str = ""
    undo_of: str = ""
    # Told each piece of a tool that streams, as JSON, when it comes.
    on_piece: Callable[[Any], object] | None = None
    # Whoever waits for it and can be spoken to.
    line: Line | None = None
    # Whether it was let through before, and only its world has changed since.
    anew: bool = False
    # The id that it was queued by, once a worker has it: it runs under that, and is not queued.
    delivered: str = ""


PLAINLY = Asked()
