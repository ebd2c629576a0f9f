"""What several machines share, looked at from this one: whether it can bear a fleet."""

from toolgate import clock, queueing
from toolgate.bootstrap import Toolgate
from toolgate.cli.finding import Finding
from toolgate.errors import SettingsInvalid, StoreError, ToolgateError
from toolgate.settings.settings import Settings
from toolgate.storage import places

# One that waits longer than this waits for a worker that is not there.
_LONG_S = 60.0


async def fleet(gate: Toolgate, settings: Settings) -> list[Finding]:
    """The store, what is shared, and the queue, each with what a fleet needs of it."""
    return [
        await _store(settings),
        *_shared(gate, settings),
        await _broker(settings),
        await _queue(gate),
    ]


async def _store(settings: Settings) -> Finding:
    if settings.store.url.startswith("sqlite:"):
        says = "a file, for one machine; set [store] url = postgresql://… for several"
        return Finding("fleet store", False, says)
    try:
        used, most = await places(settings)
    except StoreError as error:
        return Finding("fleet store", False, error.message)
    each = settings.store.connections
    says = (
        f"PostgreSQL has {most:,} places, {used:,} in use; a process takes up to {each:,}: "
        f"{most // each:,} processes"
    )
    if used + each <= most:
        return Finding("fleet store", True, says)
    return Finding("fleet store", False, f"{says}. Raise max_connections, or lower connections")


def _shared(gate: Toolgate, settings: Settings) -> list[Finding]:
    """Redis, which has been asked by now, and what holds while it is away."""
    if not settings.cache.url:
        says = "none: each node counts its own limits; set [cache] url = redis://…"
        return [Finding("fleet cache", False, says)]
    problem = next((one.problem for one in gate.gate.health() if one.engine == "redis"), "")
    says = " ".join(problem.split()) or "Redis, for limits, decisions and word of changes"
    return [Finding("fleet cache", not problem, says), _parts(settings.limits.processes)]


def _parts(processes: int) -> Finding:
    if processes > 1:
        says = f"while Redis is away each process has 1/{processes:,} of a rate limit"
        return Finding("fleet limits", True, says)
    says = (
        "while Redis is away each process has a whole rate limit; "
        "set [limits] processes to the number of nodes and workers"
    )
    return Finding("fleet limits", False, says)


async def _broker(settings: Settings) -> Finding:
    if not settings.queue.url:
        return Finding("broker", True, "none: workers take queued calls from the store")
    try:
        told = await queueing.examined(settings)
    except SettingsInvalid as error:
        return Finding("broker", False, "; ".join(map(str, error.problems)))
    except ToolgateError as error:
        return Finding("broker", False, error.message)
    return Finding("broker", not told, "; ".join(told) or "answers, and has every topic")


async def _queue(gate: Toolgate) -> Finding:
    try:
        depth = await gate.queue.calls.depth()
    except StoreError as error:
        return Finding("queue", False, error.message)
    waits_s = (clock.unix_ns() - depth.unheld_ns) / 1e9 if depth.unheld_ns else 0.0
    says = f"{depth.waiting:,} wait, {depth.sent + depth.taken:,} are under way"
    if waits_s > _LONG_S:
        says += f", one that no worker holds for {waits_s:,.0f} s: is a worker there?"
    if depth.dead:
        says += f", {depth.dead:,} dead: toolgate queue dead, then retry or discard"
    return Finding("queue", waits_s <= _LONG_S and not depth.dead, says)
