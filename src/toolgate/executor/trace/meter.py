"""What is counted of calls: plain numbers in dictionaries, on the loop's one thread.

Whoever wants them in some format reads them (`toolgate.telemetry`). A client library takes a lock
and several microseconds for what are three additions here.
"""

from bisect import bisect_left
from collections.abc import Hashable
from typing import TypeVar

from toolgate.call import Call, Grant
from toolgate.errors import ToolgateError

K = TypeVar("K", bound=tuple[Hashable, ...])
# In seconds, and in nanoseconds below. The first ones tell calls that never wait apart.
BUCKETS = (
    *(0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
BOUNDS = tuple(round(seconds * 1e9) for seconds in BUCKETS)
# How a call can end: as its Output says, or without one.
STATUSES = (
    *("success", "error", "pending_approval", "queued", "skipped", "superseded", "partial"),
    *("unknown", "refused", "cancelled"),
)
# Names come from callers: so many are told apart, all further ones are one.
MOST = 1_000
OTHER = "other"


class Calls:
    """One agent's calls of one tool."""

    __slots__ = ("buckets", "gateway", "statuses", "sum_ns")

    def __init__(self, gateway: str) -> None:
        self.gateway = gateway
        self.statuses = dict.fromkeys(STATUSES, 0)
        # Only those that ran, or may have: how long it takes to refuse says nothing about a tool.
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.sum_ns = 0

    def took(self, duration_ns: int) -> None:
        """Note how long it ran."""
        self.buckets[bisect_left(BOUNDS, duration_ns)] += 1
        self.sum_ns += duration_ns


class Meter:
    """Everything that is counted, by its labels."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        # By tenant, agent and tool.
        self.calls: dict[tuple[str, str, str], Calls] = {}
        # Answered from the record, by tenant and tool.
        self.hits: dict[tuple[str, str], int] = {}
        # By tenant, agent and effect.
        self.effects: dict[tuple[str, str, str], int] = {}
        # Refused by the gate, by tool and user.
        self.denied: dict[tuple[str, str], int] = {}
        # Refused by anything, by the error's code.
        self.refused: dict[tuple[str], int] = {}
        # Further attempts, by tool.
        self.retries: dict[tuple[str], int] = {}
        # Not let in by a door, by the reason.
        self.knocks: dict[tuple[str], int] = {}
        # Queued calls that a worker here has ended, by how.
        self.ended: dict[tuple[str], int] = {}
        # Stood in the way of every other call, by tool.
        self.blocked: dict[tuple[str], int] = {}
        # How many tools an agent was shown the last time.
        self.discovered: dict[tuple[str], int] = {}

    def of(self, grant: Grant) -> Calls:
        """The calls that this one belongs to."""
        caller = grant.caller
        key = caller.tenant, caller.agent, grant.spec.name
        found = self.calls.get(key)
        if found is None:
            gateway = grant.spec.provider
            if len(self.calls) >= self._most:
                key, gateway = (OTHER, OTHER, OTHER), OTHER
                found = self.calls.get(key)
            if found is None:
                found = self.calls[key] = Calls(gateway)
        return found

    def hit(self, call: Call) -> None:
        """A call was answered with what is on record."""
        self._count(self.hits, (call.grant.caller.tenant, call.grant.spec.name))

    def effect(self, call: Call) -> None:
        """Something was changed, or may have been."""
        caller, spec = call.grant.caller, call.grant.spec
        self._count(self.effects, (caller.tenant, caller.agent, spec.effect.value))

    def deny(self, tool: str, user: str, code: str) -> None:
        """The gate said no."""
        self._count(self.denied, (tool, user))
        self.refuse(code)

    def refuse(self, code: str) -> None:
        """Somebody said no."""
        self._count(self.refused, (code,))

    def knock(self, reason: str) -> None:
        """A key or a token opened nothing."""
        self._count(self.knocks, (reason,))

    def retry(self, call: Call, _attempt: int, _error: ToolgateError) -> None:
        """A tool is tried once more."""
        self._count(self.retries, (call.grant.spec.name,))

    def end(self, status: str) -> None:
        """A queued call is over."""
        self._count(self.ended, (status,))

    def block(self, tool: str) -> None:
        """The loop did not come round; empty where no tool was in its way."""
        self._count(self.blocked, (tool,))

    def show(self, agent: str, tools: int) -> None:
        """An agent looked at its tools."""
        key = (agent,)
        if key not in self.discovered and len(self.discovered) >= self._most:
            key = (OTHER,)
        self.discovered[key] = tools

    def _count(self, counts: dict[K, int], key: K) -> None:
        if key not in counts and len(counts) >= self._most:
            key = (OTHER,) * len(key)  # pyright: ignore[reportAssignmentType]
        counts[key] = counts.get(key, 0) + 1
