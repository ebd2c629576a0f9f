"""What keeps failing is left alone for a while, and says so at once."""

import asyncio
from urllib.parse import urlsplit

from toolgate import clock
from toolgate.breaker import Breaker, Limits, Outcome, State
from toolgate.call import Call, Output
from toolgate.errors import (
    CallRefused,
    CircuitOpen,
    ExecutionFailed,
    ProviderUnavailable,
    TimedOut,
    ToolError,
)
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.resilience.deadline import is_overdue, out_of_time
from toolgate.spec.tool import ToolSpec

LIMITS = Limits(window=50, at_least=10, failed_share=0.5, wait=5.0, probes=3, patience=30.0)
# Forgetting the oldest is harmless: what still fails opens its breaker again.
_MOST_BREAKERS = 10_000
_PLACES = ("url", "base_url", "endpoint")
_SUCCEEDED = Outcome.SUCCEEDED
# What runs in this process has nothing behind it that could be away.
_HERE = frozenset({"builtin", "python"})
# What a gateway says of a server that is down or overloaded.
_AWAY = frozenset({502, 503, 504})
Key = tuple[str, str]


def upstream_of(spec: ToolSpec) -> str:
    """What stands behind a tool and can be down by itself: a server's name or host; else empty."""
    config = spec.config.value()
    server = config.get("server")
    if isinstance(server, str) and server:
        return f"{spec.provider}:{server}"
    for place in _PLACES:
        url = config.get(place)
        if isinstance(url, str):
            host = urlsplit(url).netloc.rpartition("@")[2].lower()
            if host:
                return f"{spec.provider}:{host}"
    return ""


def judged(error: BaseException) -> Outcome:
    """Timeouts and exceptions count. What a tool says on purpose, and what we refuse, does not;
    nor what is not here at all, since its own reason says more.
    """
    if isinstance(error, asyncio.CancelledError):
        return Outcome.FAILED if is_overdue(error) else Outcome.IGNORED
    if isinstance(error, (ToolError, CallRefused)):
        is_away = isinstance(error, ProviderUnavailable) and error.retryable
        return Outcome.FAILED if is_away else Outcome.IGNORED
    if isinstance(error, ExecutionFailed) and error.is_answer:
        return Outcome.IGNORED
    return Outcome.FAILED if isinstance(error, (ExecutionFailed, TimedOut)) else Outcome.IGNORED


def judged_behind(error: BaseException) -> Outcome:
    """The same of the server behind a tool. One that answers is there, whatever it answers: a
    tool of it that fails leaves the others alone.
    """
    status = error.details.get("status") if isinstance(error, ExecutionFailed) else None
    if isinstance(status, int) and status not in _AWAY:
        return Outcome.IGNORED
    return judged(error)


class Breaking(Extension):
    """A breaker for each tool of each tenant, so that one tenant's trouble is not another's.

    What stands behind tools has one for all: a host that is down is down for everybody.
    """

    priority = 470

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._breakers: dict[Key, Breaker] = {}
        # By a spec's fingerprint: reading its config costs more than the rest of this link.
        self._upstreams: dict[str, str] = {}

    def link(self, inner: Handler) -> Handler:
        """Around the bulkhead: whoever is refused here takes no place in a queue."""
        breakers, behind = self._breakers, self._behind(inner)

        async def run(call: Call) -> Output:
            spec = call.grant.spec
            now = clock.monotonic_ns()
            if now >= call.until_ns:
                raise out_of_time(call)
            key = (call.grant.caller.tenant, spec.name)
            breaker = breakers.get(key) or self._breaker(key)
            permit = breaker.enter(now)
            if permit is None:
                raise _open(call, spec.name, breaker.wait_left(now))
            try:
                # Only a provider that reaches out has something behind it.
                output = await (inner(call) if spec.provider in _HERE else behind(call))
            except BaseException as error:
                breaker.leave(permit, clock.monotonic_ns(), judged(error))
                raise
            now = clock.monotonic_ns()
            # What blocks the loop cannot be ended in time: its answer is good, and came too late.
            is_late = now >= call.until_ns
            breaker.leave(permit, now, Outcome.FAILED if is_late else _SUCCEEDED)
            return output

        return run

    def troubled(self) -> dict[tuple[str, ...], float]:
        """Those that are not closed, by tenant and tool: 1 is open, 0.5 lets a few pass."""
        now = clock.monotonic_ns()
        states = ((key, breaker.state(now)) for key, breaker in self._breakers.items())
        return {
            key: 1.0 if state is State.OPEN else 0.5
            for key, state in states
            if state is not State.CLOSED
        }

    def _behind(self, inner: Handler) -> Handler:
        async def run(call: Call) -> Output:
            upstream = self._upstream(call.grant.spec)
            if not upstream:
                return await inner(call)
            now = clock.monotonic_ns()
            breaker = self._breakers.get(("", upstream)) or self._breaker(("", upstream))
            permit = breaker.enter(now)
            if permit is None:
                raise _open(call, f"the server behind {call.spec.name}", breaker.wait_left(now))
            try:
                output = await inner(call)
            except BaseException as error:
                breaker.leave(permit, clock.monotonic_ns(), judged_behind(error))
                raise
            breaker.leave(permit, clock.monotonic_ns(), _SUCCEEDED)
            return output

        return run

    def _breaker(self, key: Key) -> Breaker:
        if len(self._breakers) >= _MOST_BREAKERS:
            del self._breakers[next(iter(self._breakers))]
        found = self._breakers[key] = Breaker(self._limits)
        return found

    def _upstream(self, spec: ToolSpec) -> str:
        found = self._upstreams.get(spec.fingerprint)
        if found is None:
            if len(self._upstreams) >= _MOST_BREAKERS:
                self._upstreams.clear()
            found = self._upstreams[spec.fingerprint] = upstream_of(spec)
        return found


def _open(call: Call, what: str, seconds: float) -> CircuitOpen:
    # At least a second: less would bring everybody back at once.
    wait = max(round(seconds, 1), 1.0)
    return CircuitOpen(
        f"{what!r} has failed too often and is left alone for {wait:g} s. Nothing ran: try again "
        "then, or do without it.",
        tool=call.spec.name,
        retry_after=wait,
    )
