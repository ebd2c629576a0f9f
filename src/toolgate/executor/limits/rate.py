"""Rate limits: of a tenant, of its personas, of its tools, and what a tool's definition says."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from toolgate import clock, gcra
from toolgate.call import Call, Output
from toolgate.errors import LimitsUnavailable, RateLimited
from toolgate.executor.extension import Extension, Handler
from toolgate.gcra import Limit, Meter, Refused
from toolgate.spec.effect import Effect
from toolgate.spec.fields import rate_limit
from toolgate.spec.tool import RateLimit, ToolSpec
from toolgate.tenancy.world import World

# Whom a limit holds for is worked out once; names that callers make up must not fill the memory.
_MOST_TERMS = 10_000
_SECOND = 1_000_000_000


class Rates(Protocol):
    """Limits that several processes share."""

    async def take(self, limits: Sequence[Limit]) -> Refused | None:
        """Use one call of every limit, or of none; `LimitsUnavailable` where nobody can tell."""
        ...


class Usual(msgspec.Struct, frozen=True, kw_only=True):
    """What holds where an operator has said nothing."""

    tenant: RateLimit | None = None
    persona: RateLimit | None = None
    tool: RateLimit | None = None


def usual(*, tenant: str = "", persona: str = "", tool: str = "") -> Usual:
    """From texts such as `600/minute`; an empty one is no limit."""
    return Usual(
        tenant=rate_limit(tenant) if tenant else None,
        persona=rate_limit(persona) if persona else None,
        tool=rate_limit(tool) if tool else None,
    )


class _Terms(NamedTuple):
    """The limits of one tenant, persona and tool; and each in the part of one process."""

    spec: ToolSpec
    limits: tuple[Limit, ...]
    parts: tuple[Limit, ...]


_Key = tuple[str, str, str]


class Rate(Extension):
    """Refuses what is too much. Where there is no limit it costs a look into a dictionary."""

    priority = 220

    def __init__(
        self,
        world: Callable[[], World],
        *,
        usual: Usual | None = None,
        shared: Rates | None = None,
        processes: int = 1,
        now_ns: Callable[[], int] = clock.monotonic_ns,
    ) -> None:
        """`shared` counts for all processes; while it is away, each of `processes` has a part."""
        self._world = world
        self._usual = usual or Usual()
        self._shared = shared
        self._processes = processes
        self._now_ns = now_ns
        self._meter = Meter()
        self._seen: World | None = None
        self._known: dict[_Key, _Terms] = {}

    def link(self, inner: Handler) -> Handler:
        """After validation: what is malformed uses nothing up."""
        find, now_ns, meter, world_now = self._known, self._now_ns, self._meter, self._world
        shared = None if self._shared is None else self._together(self._shared, inner)

        # Not a coroutine of its own: a call without a limit does not pay for one.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            caller, spec = call.grant.caller, call.grant.spec
            key = (caller.tenant, caller.persona, spec.name)
            terms = find.get(key)
            if terms is None or terms.spec is not spec or world_now() is not self._seen:
                terms = self._terms(key, spec)
            # What is decided anew has used its part already.
            if not terms.limits or call.asked.anew:
                return inner(call)
            if shared is not None:
                return shared(call, terms)
            refused = meter.take(terms.limits, now_ns())
            if refused is not None:
                raise _too_many(call, refused)
            return inner(call)

        return run

    def _together(
        self, shared: Rates, inner: Handler
    ) -> Callable[[Call, _Terms], Coroutine[Any, Any, Output]]:
        async def run(call: Call, terms: _Terms) -> Output:
            try:
                refused = await shared.take(terms.limits)
            except LimitsUnavailable:
                if call.grant.spec.effect is not Effect.PURE:
                    # What cannot be proven to be within its limit does not change the world.
                    raise
                refused = self._meter.take(terms.parts, self._now_ns())
            if refused is not None:
                raise _too_many(call, refused)
            return await inner(call)

        return run

    def _terms(self, key: _Key, spec: ToolSpec) -> _Terms:
        world = self._world()
        if world is not self._seen or len(self._known) >= _MOST_TERMS:
            self._known.clear()
            self._seen = world
        found = tuple(self._limits(world, key, spec))
        terms = _Terms(
            spec,
            tuple(gcra.limit(at, one.calls, one.per) for at, one in found),
            tuple(gcra.limit(at, one.calls, one.per, share=self._processes) for at, one in found),
        )
        self._known[key] = terms
        return terms

    def _limits(self, world: World, key: _Key, spec: ToolSpec) -> list[tuple[str, RateLimit]]:
        """One of each kind: the tenant's own, else that for each tenant, else the settings'."""
        tenant, persona, tool = key
        own, each, usual = world.tenant(tenant).rates, world.everyone.rates, self._usual
        kinds = (
            ("tenant", "", ("", ""), usual.tenant, True),
            ("persona", persona, (persona, ""), usual.persona, bool(persona)),
            ("tool", tool, ("", tool), usual.tool, True),
            ("both", f"{len(tool)}/{tool}/{persona}", (persona, tool), None, bool(persona)),
        )
        found: list[tuple[str, RateLimit]] = []
        for kind, name, row, default, applies in kinds:
            limit = own.get(row) or each.get(row) or default
            if applies and limit is not None:
                # In braces: a cluster keeps all that one call looks at in one place.
                found.append((f"{kind}:{{{tenant}}}/{name}", limit))
        if spec.rate_limit is not None:
            # What the author knows about the far side holds whatever an operator grants.
            found.append((f"spec:{{{tenant}}}/{tool}", spec.rate_limit))
        return found


_WHOSE = {
    "tenant": "this tenant",
    "persona": "the persona {persona!r}",
    "tool": "{tool!r} by this tenant",
    "both": "{tool!r} by the persona {persona!r}",
    "spec": "{tool!r}",
}


def _too_many(call: Call, refused: Refused) -> RateLimited:
    limit, seconds = refused.limit, max(-(-refused.wait_ns // _SECOND), 1)
    kind = limit.key.partition(":")[0]
    whose = _WHOSE[kind].format(tool=call.spec.name, persona=call.caller.persona[:80])
    return RateLimited(
        f"Too many calls of {whose}: at most {limit.calls:,} in {limit.per:g} s. Nothing ran: "
        f"try again in {seconds:,} s.",
        retry_after=seconds,
        limit=kind,
        calls=limit.calls,
        per=limit.per,
    )
