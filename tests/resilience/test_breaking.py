"""A tool that keeps failing is left alone; what it says on purpose never counts."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.house import ME
from tests.resilience.far import far
from toolgate import Call, Caller, ToolError, clock, tool
from toolgate.breaker import Limits, Outcome
from toolgate.errors import CircuitOpen, InvalidArguments, Overloaded, ProviderUnavailable
from toolgate.executor.resilience import deadline
from toolgate.executor.resilience.breaking import Breaking, judged, upstream_of
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

OTHER = Caller(tenant="globex", agent="billing")
LIMITS = Limits(window=6, at_least=4, failed_share=0.5, wait=30.0, probes=2, patience=60.0)


def raising(*errors: Any) -> Any:
    """A tool that raises these one after the other, and then answers."""
    left = list(errors)

    @tool(effect="pure", name="act")
    async def act() -> str:
        error = left.pop(0) if left else None
        if error is not None:
            raise error
        return "done"

    return act


async def outcomes(house: Any, times: int, caller: Caller = ME) -> list[str]:
    found: list[str] = []
    for _ in range(times):
        try:
            output = await house.call("act", caller=caller)
            found.append("" if output.error is None else output.error.code)
        except (CircuitOpen, Overloaded) as error:
            found.append(error.code)
    return found


@pytest.mark.req("X4")
async def test_it_opens_after_enough_failures_says_for_how_long_and_runs_nothing() -> None:
    journal = MemoryJournal()
    act = raising(*[ValueError()] * 100)
    async with in_memory(act, extensions=[Breaking(LIMITS)], journal=journal) as house:
        assert await outcomes(house, 6) == ["execution_failed"] * 4 + ["circuit_open"] * 2
        with pytest.raises(CircuitOpen) as refused:
            await house.call("act", caller=ME)
    assert refused.value.retryable
    assert 25 < refused.value.details["retry_after"] <= 30
    assert [entry.error_code for entry in journal.calls[4:]] == ["circuit_open"] * 3
    assert {str(entry.state) for entry in journal.calls} == {"failed"}


@pytest.mark.req("X4")
async def test_the_chain_has_one_for_every_tool() -> None:
    async with in_memory(raising(*[ValueError()] * 100)) as house:
        assert (await outcomes(house, 20))[-1] == "circuit_open"


@pytest.mark.req("X4")
async def test_what_a_tool_says_on_purpose_never_opens_it() -> None:
    act = raising(*[ToolError("there is no such order")] * 50)
    async with in_memory(act, extensions=[Breaking(LIMITS)]) as house:
        assert set(await outcomes(house, 50)) == {"tool_error"}
        for _ in range(20):
            with pytest.raises(InvalidArguments):
                await house.call("act", {"no": "such"}, caller=ME)
        assert await outcomes(house, 1) == [""]


@pytest.mark.req("X4")
async def test_one_tenants_trouble_is_not_anothers() -> None:
    broken = {"acme"}

    @tool(effect="pure")
    async def act(call: Call) -> str:
        if call.caller.tenant in broken:
            raise ValueError
        return "done"

    async with in_memory(act, extensions=[Breaking(LIMITS)]) as house:
        assert (await outcomes(house, 6))[-1] == "circuit_open"
        assert await outcomes(house, 6, OTHER) == [""] * 6
        assert (await outcomes(house, 1)) == ["circuit_open"]


@pytest.mark.req("X4")
async def test_cancelled_calls_give_their_permit_back() -> None:
    began = asyncio.Event()

    @tool(effect="pure")
    async def act(wait: bool = True) -> str:  # noqa: FBT001, FBT002
        began.set()
        if wait:
            await asyncio.Event().wait()
        return "done"

    breaking = Breaking(LIMITS)
    async with in_memory(act, extensions=[breaking]) as house:
        for _ in range(12):
            began.clear()
            calling = asyncio.create_task(house.call("act", caller=ME))
            await began.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        assert (await house.call("act", {"wait": False}, caller=ME)).ok


@pytest.mark.req("X4")
async def test_timeouts_count() -> None:
    @tool(effect="pure", timeout=0.01)
    async def act() -> None:
        await asyncio.Event().wait()

    async with in_memory(act, extensions=[Breaking(LIMITS)]) as house:
        assert await outcomes(house, 5) == ["timed_out"] * 4 + ["circuit_open"]


@pytest.mark.req("X4")
async def test_a_host_that_is_down_is_down_for_all_its_tools() -> None:
    class Far:
        def unusable(self, spec: Any) -> str | None:
            return None

        async def run(self, call: Call) -> Any:
            if "down" in call.spec.config.value()["url"]:
                raise ProviderUnavailable("no connection")
            return "done"

    config = {"url": "https://down.example/v1/a"}
    specs = [far(name=name, effect="pure", config=config) for name in ("one", "two")]
    other = {"url": "https://up.example/v1/a"}
    specs.append(far(name="act", effect="pure", config=other))
    async with in_memory(providers={"far": Far()}, extensions=[Breaking(LIMITS)]) as house:
        house.catalog.put("far", specs)
        for _ in range(4):
            with pytest.raises(ProviderUnavailable):
                await house.call("one", caller=ME)
        for caller in (ME, OTHER):
            with pytest.raises(CircuitOpen, match="behind two"):
                await house.call("two", caller=caller)
        assert await outcomes(house, 1) == [""]


@pytest.mark.parametrize(
    ("config", "upstream"),
    [
        ({"url": "https://user:secret@API.example:8443/x"}, "far:api.example:8443"),
        ({"server": "github"}, "far:github"),
        ({"url": "not a url"}, ""),
        ({}, ""),
    ],
)
def test_what_stands_behind_a_tool_is_its_server_or_host(config: Any, upstream: str) -> None:
    spec = far(effect="pure", config=config)
    assert upstream_of(spec) == upstream


ERRORS: dict[str, tuple[BaseException | None, Outcome]] = {
    "done": (None, Outcome.SUCCEEDED),
    "raised": (ValueError(), Outcome.FAILED),
    "said": (ToolError("no"), Outcome.IGNORED),
    "refused": (Overloaded("no"), Outcome.IGNORED),
}


@settings(max_examples=60)
@given(st.lists(st.sampled_from(sorted(ERRORS)), max_size=30))
def test_the_link_is_as_the_model(kinds: list[str]) -> None:
    """Closed until half of the last six that count have failed, of at least four; then open."""
    seen: list[bool] = []
    is_open = False
    expected: list[bool] = []
    for kind in kinds:
        expected.append(is_open)
        if is_open or ERRORS[kind][1] is Outcome.IGNORED:
            continue
        seen = [*seen, ERRORS[kind][1] is Outcome.FAILED][-6:]
        is_open = len(seen) >= 4 and sum(seen) >= 0.5 * len(seen)

    left = iter(kinds)

    class Far:
        def unusable(self, spec: Any) -> str | None:
            return None

        async def run(self, call: Call) -> Any:
            error = ERRORS[call.args["kind"]][0]
            if error is not None:
                raise error

    async def run() -> list[bool]:
        found: list[bool] = []
        kinds = {"type": "object", "properties": {"kind": {"type": "string"}}}
        spec = far(name="act", effect="pure", input_schema=kinds)
        async with in_memory(providers={"far": Far()}, extensions=[Breaking(LIMITS)]) as house:
            house.catalog.put("far", [spec])
            for kind in left:
                try:
                    await house.call("act", {"kind": kind}, caller=ME)
                    found.append(False)
                except Overloaded:
                    found.append(False)
                except CircuitOpen:
                    found.append(True)
        return found

    assert asyncio.run(run()) == expected


def test_what_is_ours_or_said_on_purpose_is_nobodys_failure() -> None:
    for error, outcome in list(ERRORS.values())[2:]:
        assert error is not None
        assert judged(error) is outcome
    assert judged(asyncio.CancelledError()) is Outcome.IGNORED
    assert judged(GeneratorExit()) is Outcome.IGNORED
    assert judged(ProviderUnavailable("away")) is Outcome.FAILED


async def test_a_tool_that_blocks_the_loop_past_its_time_again_and_again_is_left_alone() -> None:
    @tool(effect="pure", name="act", timeout=0.01)
    async def act() -> str:
        # Nothing can end it in here: it never waits.
        while deadline.latest_ns() > clock.monotonic_ns():
            pass
        return "done"

    async with in_memory(act, extensions=[Breaking(LIMITS)]) as house:
        assert await outcomes(house, 6) == [""] * 4 + ["circuit_open"] * 2
