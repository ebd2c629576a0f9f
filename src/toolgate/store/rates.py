"""Rate limits in Redis: one script, one round trip for all that hold for a call, Redis's clock.

Keys go by themselves once they are as good as new. A server that does not answer in time is left
alone for a moment; what cannot be told is never taken for a yes.
"""

# redis carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Sequence
from typing import Any

from toolgate import clock
from toolgate.breaker import Breaker, Limits, Outcome
from toolgate.errors import LimitsUnavailable
from toolgate.gcra import Limit, Refused
from toolgate.store.redis import PREFIX, client

_log = logging.getLogger("toolgate.redis")
_SECONDS = 0.25
_LONGEST = 200
# A question takes a fraction of what opening one does: a crowd of callers waits for its turn.
_CONNECTIONS = 8
_AWAY = Limits(window=10, at_least=3, failed_share=0.5, wait=1.0, probes=1, patience=5.0)
# Microseconds since the epoch: a number of Lua's holds them exactly.
_TAKE = """
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local fair = {}
for i, key in ipairs(KEYS) do
  local interval, ahead = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local at = tonumber(redis.call('GET', key) or '0')
  if at < now then at = now end
  if at > now + ahead + interval then at = now + ahead + interval end
  if at - now > ahead then
    return {i, string.format('%.0f', at - now - ahead)}
  end
  fair[i] = at + interval
end
for i, key in ipairs(KEYS) do
  local left = math.ceil((fair[i] - now) / 1000) + 1
  redis.call('SET', key, string.format('%.3f', fair[i]), 'PX', string.format('%.0f', left))
end
return {0, '0'}
"""


class RedisRates:
    """The port `executor.rate.Rates` over a Redis server."""

    def __init__(self, url: str, installation: str = "") -> None:
        """`url` and `installation` as for `RedisShared`."""
        self._prefix = f"{PREFIX}{installation}:rate:"
        self._client = client(url, connections=_CONNECTIONS)
        self._take: Any = self._client.register_script(_TAKE)
        self._breaker = Breaker(_AWAY)
        self._is_away = False

    async def close(self) -> None:
        """Let go."""
        with contextlib.suppress(Exception):
            await self._client.aclose()

    async def take(self, limits: Sequence[Limit]) -> Refused | None:
        """Use one call of every limit, or of none; `LimitsUnavailable` where nobody can tell."""
        permit = self._breaker.enter(clock.monotonic_ns())
        if permit is None:
            raise _unproven()
        outcome = Outcome.IGNORED
        try:
            async with asyncio.timeout(_SECONDS):
                number, wait_us = await self._asked(limits)
            outcome = Outcome.SUCCEEDED
        except Exception as error:  # noqa: BLE001  a broken server can break its client in any way
            outcome = Outcome.FAILED
            self._told(type(error).__name__)
            raise _unproven() from None
        finally:
            # A call that was cancelled says nothing about the server.
            self._breaker.leave(permit, clock.monotonic_ns(), outcome)
        self._told("")
        return None if number == 0 else Refused(limits[number - 1], wait_us * 1_000)

    async def _asked(self, limits: Sequence[Limit]) -> tuple[int, int]:
        args: list[str] = []
        for one in limits:
            args += (f"{one.interval_ns / 1_000:.3f}", f"{one.ahead_ns / 1_000:.3f}")
        number, wait_us = await self._take(keys=[self._name(one) for one in limits], args=args)
        return int(number), int(wait_us)

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
