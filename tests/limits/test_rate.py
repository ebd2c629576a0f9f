"""Rate limits in one process: whose they are, where they come from, and what is told."""

from pathlib import Path

import msgspec
import pytest

from tests.limits.house import ME, look, open_limited, outcome, outcomes, put, send
from toolgate import tool
from toolgate.errors import InvalidArguments, RateLimited
from toolgate.executor.limits import rate

pytestmark = pytest.mark.req("X10")
GLOBEX = msgspec.structs.replace(ME, tenant="globex")
INTERN = msgspec.structs.replace(ME, persona="intern")


async def test_without_a_limit_everything_passes(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(look)
        assert await outcomes(gate, "look", 300) == ["success"] * 300


async def test_a_tenant_is_limited_as_a_whole_and_no_other_with_it(tmp_path: Path) -> None:
    async with open_limited(tmp_path, tenant="3/hour") as gate:
        gate.add(look, send)
        assert [await outcome(gate, "look") for _ in range(2)] == ["success"] * 2
        assert await outcome(gate, "send", INTERN) == "success"
        assert await outcome(gate, "look") == "rate_limited"
        assert await outcome(gate, "look", GLOBEX) == "success"


async def test_a_persona_is_limited_by_itself(tmp_path: Path) -> None:
    async with open_limited(tmp_path, persona="1/hour") as gate:
        gate.add(look)
        assert await outcome(gate, "look") == "success"
        assert await outcome(gate, "look") == "rate_limited"
        assert await outcome(gate, "look", INTERN) == "success"
        nobody = msgspec.structs.replace(ME, persona="")
        assert [await outcome(gate, "look", nobody) for _ in range(3)] == ["success"] * 3


async def test_a_tool_is_limited_by_tenant(tmp_path: Path) -> None:
    async with open_limited(tmp_path, tool="1/hour") as gate:
        gate.add(look, put)
        assert await outcome(gate, "look") == "success"
        assert await outcome(gate, "look", INTERN) == "rate_limited"
        assert await outcome(gate, "put") == "success"
        assert await outcome(gate, "look", GLOBEX) == "success"


async def test_what_a_definition_says_holds_whatever_an_operator_grants(tmp_path: Path) -> None:
    @tool(effect="pure", rate_limit="2/hour")
    async def scarce() -> int:
        """Ask a slow server."""
        return 1

    async with open_limited(tmp_path) as gate:
        gate.add(scarce)
        await gate.tenancy.set_rate_limit("1000/second", tenant="acme", tool="scarce")
        assert await outcomes(gate, "scarce", 3) == ["success", "success", "rate_limited"]


async def test_an_operator_sets_a_limit_while_it_runs_and_takes_it_away(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(look)
        assert await outcomes(gate, "look", 5) == ["success"] * 5
        await gate.tenancy.set_rate_limit("1/hour", tenant="acme")
        assert await outcome(gate, "look") == "success"
        assert await outcome(gate, "look") == "rate_limited"
        await gate.tenancy.set_rate_limit(None, tenant="acme")
        assert await outcome(gate, "look") == "success"


async def test_the_tenants_own_limit_takes_the_place_of_the_one_for_each(tmp_path: Path) -> None:
    async with open_limited(tmp_path, tool="1/hour") as gate:
        gate.add(look)
        await gate.tenancy.set_rate_limit("2/hour", tool="look")
        assert await outcomes(gate, "look", 3, GLOBEX) == ["success", "success", "rate_limited"]
        await gate.tenancy.set_rate_limit("3/hour", tenant="acme", tool="look")
        assert (await outcomes(gate, "look", 4)).count("success") == 3


async def test_a_persona_can_have_a_limit_for_one_tool(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(look, put)
        await gate.tenancy.set_rate_limit("1/hour", persona="intern", tool="look")
        assert await outcomes(gate, "look", 2, INTERN) == ["success", "rate_limited"]
        assert await outcome(gate, "put", INTERN) == "success"
        assert await outcomes(gate, "look", 2) == ["success"] * 2


async def test_a_call_that_the_last_limit_refuses_uses_nothing_of_the_first(tmp_path: Path) -> None:
    async with open_limited(tmp_path, tenant="3/hour", tool="1/hour") as gate:
        gate.add(look, put, send)
        assert (await outcomes(gate, "look", 20)).count("success") == 1
        assert await outcome(gate, "put") == "success"
        assert await outcome(gate, "send") == "success"


async def test_wrong_arguments_use_nothing_up(tmp_path: Path) -> None:
    async with open_limited(tmp_path, tenant="1/hour") as gate:
        gate.add(look)
        for _ in range(5):
            with pytest.raises(InvalidArguments):
                await gate.call("look", {"what": 7}, caller=ME)
        assert await outcome(gate, "look") == "success"


async def test_a_refusal_says_when_to_come_back_and_nothing_ran(tmp_path: Path) -> None:
    happened: list[int] = []

    @tool(effect="irreversible", rate_limit={"calls": 1, "per": 90.5})
    async def act() -> None:
        """Act."""
        happened.append(1)

    async with open_limited(tmp_path) as gate:
        gate.add(act)
        await gate.call("act", caller=ME)
        with pytest.raises(RateLimited) as refused:
            await gate.call("act", caller=ME)
    assert happened == [1]
    assert refused.value.retryable
    assert refused.value.details["retry_after"] == 91
    assert refused.value.message == (
        "Too many calls of 'act': at most 1 in 90.5 s. Nothing ran: try again in 91 s."
    )


async def test_names_that_callers_make_up_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate, "_MOST_TERMS", 20)
    async with open_limited(tmp_path, persona="1/hour") as gate:
        gate.add(look)
        for number in range(60):
            caller = msgspec.structs.replace(ME, persona=f"p{number}")
            assert await outcomes(gate, "look", 2, caller) == ["success", "rate_limited"]
