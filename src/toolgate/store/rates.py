"""Rate limits in Redis: one script for all that hold for a call, by Redis's clock.

Calls that come while one round trip is under way share the next one, and those that the same limits
hold for share the script too. Keys go by themselves once they are as good as new. A server that
does not answer in time is left alone for a moment; what cannot be told is never taken for a yes.
"""

# redis carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from redis.exceptions import NoScriptError, ResponseError

from toolgate import clock
from toolgate.breaker import Breaker, Limits, Outcome
from toolgate.errors import LimitsUnavailable
from toolgate.gcra import Limit, Refused
from toolgate.store.gather import Gather
from toolgate.store.redis import PREFIX, client

_log = logging.getLogger("toolgate.redis")
_SECONDS = 0.25
_LONGEST = 200
_AWAY = Limits(window=10, at_least=3, failed_share=0.5, wait=1.0, probes=1, patience=5.0)
# So many calls, one after the other. What a limit refuses uses nothing up, so all that come after
# would be refused as well. Microseconds since the epoch: a number of Lua's holds them exactly.
_TAKE = """
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local fair, interval, ahead = {}, {}, {}
for i, key in ipairs(KEYS) do
  interval[i], ahead[i] = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  fair[i] = tonumber(redis.call('GET', key) or '0')
  if fair[i] < now then fair[i] = now end
  local last = now + ahead[i] + interval[i]
  if fair[i] > last then fair[i] = last end
end
local function refusing()
  for i in ipairs(KEYS) do
    if fair[i] - now > ahead[i] then return i end
  end
  return 0
end
local wanted, taken, by = tonumber(ARGV[1]), 0, 0
while taken < wanted do
  by = refusing()
  if by > 0 then break end
  for i in ipairs(KEYS) do fair[i] = fair[i] + interval[i] end
  taken = taken + 1
end
if taken > 0 then
  for i, key in ipairs(KEYS) do
    local left = math.ceil((fair[i] - now) / 1000) + 1
    redis.call('SET', key, string.format('%.3f', fair[i]), 'PX', string.format('%.0f', left))
  end
end
if by == 0 then return {taken, 0, '0'} end
return {taken, by, string.format('%.0f', fair[by] - now - ahead[by])}
"""
_SHA = hashlib.sha1(_TAKE.encode(), usedforsecurity=False).hexdigest()
_Terms: TypeAlias = Sequence[Limit]


class _Group(NamedTuple):
    """Calls of one moment that the same limits hold for, by their places in it."""

    limits: _Terms
    places: list[int]


class RedisRates:
    """The port `executor.rate.Rates` over a Redis server."""

    def __init__(self, url: str, installation: str = "") -> None:
        """`url` and `installation` as for `RedisShared`."""
        self._prefix = f"{PREFIX}{installation}:rate:"
        self._client = client(url, connections=1)
        self._together = Gather(self._asked)
        self._breaker = Breaker(_AWAY)
        self._is_away = False

    async def close(self) -> None:
        """Let go, once whoever waits has heard."""
        await self._together.close()
        with contextlib.suppress(Exception):
            await self._client.aclose()

    async def take(self, limits: _Terms) -> Refused | None:
        """Use one call of every limit, or of none; `LimitsUnavailable` where nobody can tell."""
        permit = self._breaker.enter(clock.monotonic_ns())
        if permit is None:
            raise _unproven()
        outcome = Outcome.IGNORED
        try:
            # With what is under way before it: no call waits longer than that.
            async with asyncio.timeout(_SECONDS):
                refused = await self._together.do(limits)
            if isinstance(refused, Exception):
                raise refused  # noqa: TRY301  what failed for this one, told by the batch
            outcome = Outcome.SUCCEEDED
        except Exception as error:  # noqa: BLE001  a broken server can break its client in any way
            outcome = Outcome.FAILED
            self._told(type(error).__name__)
            raise _unproven() from None
        finally:
            # A call that was cancelled says nothing about the server.
            self._breaker.leave(permit, clock.monotonic_ns(), outcome)
        self._told("")
        return refused

    async def _asked(self, batch: Sequence[_Terms]) -> Sequence[Refused | Exception | None]:
        """Of each whether it is refused, or why that cannot be told."""
        groups: dict[int, _Group] = {}
        for place, limits in enumerate(batch):
            groups.setdefault(id(limits), _Group(limits, [])).places.append(place)
        async with asyncio.timeout(_SECONDS):
            told = await self._told_of(list(groups.values()))
        found: list[Refused | Exception | None] = [None] * len(batch)
        for (limits, places), answer in zip(groups.values(), told, strict=True):
            if isinstance(answer, Exception):
                taken, refused = 0, answer
            else:
                taken, by, wait_us = map(int, answer)
                # Where nothing refuses, all are taken; an answer that says otherwise is none.
                refused = Refused(limits[by - 1], wait_us * 1_000) if by else ValueError(answer)
            for place in places[taken:]:
                found[place] = refused
        return found

    async def _told_of(self, groups: Sequence[_Group]) -> Sequence[Any]:
        """What the script says about each."""
        told = list(await self._sent(groups))
        # A server that is new, or was emptied, has not run these.
        left = [place for place, one in enumerate(told) if isinstance(one, NoScriptError)]
        if left:
            await self._client.script_load(_TAKE)
            again = await self._sent([groups[place] for place in left])
            for place, answer in zip(left, again, strict=True):
                told[place] = answer
        return told

    async def _sent(self, groups: Sequence[_Group]) -> Sequence[Any]:
        if len(groups) == 1:
            try:
                return [await self._client.execute_command(*self._command(groups[0]))]
            except ResponseError as error:
                return [error]
        asking = self._client.pipeline(transaction=False)
        for one in groups:
            asking.execute_command(*self._command(one))
        return await asking.execute(raise_on_error=False)

    def _command(self, group: _Group) -> list[bytes | str | int]:
        limits, places = group
        command: list[bytes | str | int] = ["EVALSHA", _SHA, len(limits)]
        command += [self._name(one) for one in limits]
        command.append(len(places))
        for one in limits:
            command += (f"{one.interval_ns / 1_000:.3f}", f"{one.ahead_ns / 1_000:.3f}")
        return command

    def _name(self, limit: Limit) -> bytes:
        key = limit.key.encode("utf-8", "surrogatepass")
        if len(key) > _LONGEST:
            tenant, _, rest = key.partition(b"}")
            key = tenant + b"}" + hashlib.sha256(rest).hexdigest().encode()
        return self._prefix.encode() + key

    def _told(self, problem: str) -> None:
        if problem and not self._is_away:
            _log.warning(
                "Redis does not answer (%s); this node limits reads by itself, and refuses side "
                "effects that have a limit",
                problem,
            )
        elif self._is_away and not problem:
            _log.warning("Redis answers again; rate limits are shared")
        self._is_away = bool(problem)


def _unproven() -> LimitsUnavailable:
    return LimitsUnavailable(
        "Whether this call is within its rate limit cannot be told while Redis does not answer. "
        "Nothing ran: try again in a moment.",
        retry_after=1,
    )
