"""What a house stands on and sends to: files, disk, clock, and the addresses of others."""

import asyncio
import resource
from collections.abc import AsyncGenerator, Sequence
from importlib.util import find_spec
from urllib.parse import urlsplit

from toolgate import clock
from toolgate.cli.finding import Finding
from toolgate.errors import StoreError
from toolgate.premises import room
from toolgate.sandbox.choosing import chosen
from toolgate.server.limits import MAX_CONCURRENT
from toolgate.settings.settings import Settings
from toolgate.storage import connect, row_security

_SECONDS = 3.0
# Besides connections of clients a process has its store, its log and its libraries open.
_OWN_FILES = 64
_FEWEST_FILES = 256
_LEAST_FREE = 100 * 1024 * 1024
# Leases, approvals and keys end by the clock.
_MOST_SKEW = 2.0


async def around(
    settings: Settings, *, is_new: bool, programs: Sequence[str] = (), builtin: Sequence[str] = ()
) -> list[Finding]:
    """`is_new`: the store is not made yet, so that nobody can ask it for the time. `programs`: who
    runs in a sandbox. `builtin`: which of our own tools do.
    """
    found = [_open_files(), disk(room(settings)), await _sandbox(settings, programs, builtin)]
    if not is_new:
        found += await _store(settings)
    return [*found, *[one async for one in _addresses(settings)]]


async def _sandbox(settings: Settings, programs: Sequence[str], builtin: Sequence[str]) -> Finding:
    found = await chosen(settings.sandbox)
    is_named = settings.sandbox.kind != "auto"
    return sandbox(found.name, found.refusal, programs, builtin, is_named=is_named)


def sandbox(
    name: str, refusal: str, programs: Sequence[str], builtin: Sequence[str], *, is_named: bool
) -> Finding:
    """It was tried; to be without one is fine for who runs no programs of their own."""
    if not refusal:
        return Finding("sandbox", True, f"{name}; it was tried, and holds")
    if programs:
        more = f" and {len(programs) - 1:,} more" if programs[1:] else ""
        return Finding("sandbox", False, f"{programs[0]}{more} cannot run. {refusal}")
    if is_named:
        return Finding("sandbox", False, refusal)
    if builtin:
        told = f"none, so these built-in tools cannot run: {', '.join(builtin)}. {refusal}"
        return Finding("sandbox", True, told)
    return Finding("sandbox", True, f"none, and nothing here needs one yet. {refusal}")


def _open_files() -> Finding:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= MAX_CONCURRENT + _OWN_FILES:
        return Finding("open files", True, f"enough for {MAX_CONCURRENT:,} connections at a time")
    room = max(most - _OWN_FILES, 0)
    says = f"{most:,} may be open, so about {room:,} connections at a time; more with ulimit -n"
    return Finding("open files", most >= _FEWEST_FILES, says)


def disk(free: int | None) -> Finding:
    """So many bytes are left where the store is."""
    if free is None:
        return Finding("disk", False, "cannot be looked at; check that the store's folder is there")
    if free < _LEAST_FREE:
        says = f"only {free / 1e6:,.0f} MB are free where the store is; make room"
        return Finding("disk", False, says)
    return Finding("disk", True, f"{free / 1e9:,.1f} GB are free")


async def _store(settings: Settings) -> list[Finding]:
    """Its clock, and who keeps tenants apart in it."""
    if settings.store.url.startswith("sqlite:"):
        return [Finding("clock", True, "the store goes by this machine's")]
    database = connect(settings)
    try:
        before = clock.unix_ns()
        rows = await database.ask("SELECT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint")
        middle = (before + clock.unix_ns()) / 2e9
        walled = await row_security(settings, database)
    except StoreError as error:
        return [Finding("clock", False, error.message)]
    finally:
        await database.close()
    apart = int(rows[0][0]) / 1e6 - middle
    return [skew(apart, "the store's server"), Finding("tenants", *walled)]


def skew(seconds: float, whose: str) -> Finding:
    """How far another clock is ahead of this one."""
    if abs(seconds) < _MOST_SKEW:
        return Finding("clock", True, f"as that of {whose}, within {_MOST_SKEW:g} s")
    word = "ahead of" if seconds > 0 else "behind"
    says = f"that of {whose} is {abs(seconds):,.1f} s {word} this machine's; set both by NTP"
    return Finding("clock", False, says)


async def _addresses(settings: Settings) -> AsyncGenerator[Finding]:
    events, traces, auth = settings.events, settings.telemetry.traces, settings.auth
    if settings.relations.engine == "off":
        yield Finding("relations", True, "not asked for ([relations] engine)")
    if not settings.cache.url:
        yield Finding("cache", True, "in this process; nodes share nothing but the store")
    if not events.url:
        yield Finding("events", True, "kept for the turn and for subscribers; no webhook is set")
    else:
        yield await _reached("events", events.url, "[events] url")
    if not traces:
        numbers = "numbers at /metrics" if settings.telemetry.metrics else "no numbers"
        yield Finding("telemetry", True, f"{numbers}; traces are sent nowhere")
    elif find_spec("opentelemetry") is None:
        says = "[telemetry] traces needs OpenTelemetry: make install EXTRAS=otel"
        yield Finding("telemetry", False, says)
    else:
        yield await _reached("telemetry", traces, "[telemetry] traces")
    if auth.issuer:
        yield await _reached("auth", auth.jwks_url or auth.issuer, "[auth] issuer")
    else:
        yield Finding("auth", True, "keys; no issuer of tokens is set")


async def _reached(part: str, url: str, setting: str) -> Finding:
    """Whether somebody listens there; nothing is sent."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        says = f"{host}:{port} does not answer; check {setting}, and that it runs"
        return Finding(part, False, says)
    writer.close()
    return Finding(part, True, f"{host}:{port} answers")
