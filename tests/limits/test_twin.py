"""The house in memory limits as the one on a store does: for tests of one's own tools."""

import asyncio

import pytest

from tests.limits.house import ME, look, put
from toolgate.errors import CallRefused
from toolgate.runtime import Runtime
from toolgate.testing.house import in_memory


async def passed(house: Runtime, name: str, times: int) -> int:
    calls = (house.call(name, caller=ME) for _ in range(times))
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert all(one.code in CODES for one in found if isinstance(one, CallRefused))
    return sum(not isinstance(one, BaseException) for one in found)


CODES = {"budget_exceeded", "rate_limited"}


@pytest.mark.req("X9")
@pytest.mark.parametrize("name", ["look", "put"])
async def test_a_budget(name: str) -> None:
    async with in_memory(look, put) as house:
        await house.tenancy.set_budget("acme", "tool_calls", 100)
        assert await passed(house, name, 500) == 100
        [line] = await house.usage.lines(tenant="acme")
        assert (line.used, line.limit) == (100, 100)


@pytest.mark.req("X10")
async def test_a_rate() -> None:
    async with in_memory(look) as house:
        await house.tenancy.set_rate_limit("5/hour", persona="clerk")
        assert await passed(house, "look", 50) == 5
