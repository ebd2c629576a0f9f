"""Phase 4, its last word: the Rego policy. What an engine gets to see, and what it answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from toolgate.call import Turn
from toolgate.caller import Caller
from toolgate.spec.tool import ToolSpec

PHASE = "policy"
# The parts of `input` that differ from call to call. A policy that reads none is asked once.
ARGS, HISTORY, TIME = "args", "history", "time"
PER_CALL = frozenset({ARGS, HISTORY, TIME})


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine is doing. `serves`: it decides all the same, as by the last good policy."""

    engine: str
    ok: bool = True
    serves: bool = True
    problem: str = ""
    revision: str = ""


class Policy(Protocol):
    """A Rego engine with a policy in it. `PolicyUnavailable` where it does not say yes or no."""

    @property
    def revision(self) -> str:
        """Names the policy; another one where decisions may differ. The same object while it is."""
        ...

    @property
    def reads(self) -> frozenset[str]:
        """Which of `PER_CALL` the policy looks at."""
        ...

    async def allows(self, document: Mapping[str, Any]) -> bool:
        """Whether this `input` is allowed; only the policy's literal `true` is."""
        ...

    async def visible(
        self, document: Mapping[str, Any], tools: Sequence[ToolSpec]
    ) -> frozenset[str]:
        """Of these tools, the names of those that `tool.view` allows, in one question."""
        ...

    async def reasons(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Why this `input` is refused, in the policy's own words; empty where it gives none."""
        ...

    def health(self) -> Health:
        """How it is doing."""
        ...


class Remote(Protocol):
    """An engine on a server, which can be away without anybody having asked it."""

    async def probe(self) -> bool:
        """Ask it something; whether it answered."""
        ...


class History(Protocol):
    """What a session and a turn did before; asked only where the policy looks at it."""

    async def of(self, caller: Caller, turn: Turn | None) -> dict[str, Any]:
        """See `docs/reference/policy-input.md`."""
        ...
