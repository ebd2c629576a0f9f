"""Tools that yield their result in pieces, and what is left of it when time is over."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from tests.house import ME, open_gate
from toolgate import ToolError, tool
from toolgate.asked import Asked
from toolgate.executor.resilience.partial import produced, whole
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal


@tool(effect="pure")
async def words(endless: bool = False, timeout_s: float = 0) -> AsyncIterator[str]:  # noqa: FBT001, FBT002
    """Some words."""
    yield "one "
    await asyncio.sleep(timeout_s)
    yield "two"
    if endless:
        await asyncio.Event().wait()


@pytest.mark.req("X4", "P1")
async def test_the_pieces_are_the_result() -> None:
    @tool(effect="pure")
    async def rows() -> AsyncIterator[dict[str, int]]:
        row = {"number": 0}
        for row["number"] in range(3):
            yield row

    @tool(effect="pure")
    async def nothing() -> AsyncIterator[str]:
        for _ in ():
            yield ""

    async with in_memory(words, rows, nothing) as house:
        assert (await house.call("words", caller=ME)).data == "one two"
        assert (await house.call("rows", caller=ME)).data == [{"number": n} for n in range(3)]
        assert (await house.call("nothing", caller=ME)).data == []


@pytest.mark.req("X4")
@pytest.mark.parametrize(("effect", "state"), [("pure", "failed"), ("irreversible", "unknown")])
async def test_on_a_timeout_what_there_is_is_answered_and_the_call_is_on_record(
    effect: Any, state: str
) -> None:
    journal = MemoryJournal()

    @tool(effect=effect, timeout=0.05, name="slow")
    async def slow() -> AsyncIterator[dict[str, int]]:
        for number in range(3):
            yield {"number": number}
        await asyncio.Event().wait()

    async with in_memory(slow, journal=journal) as house:
        output = await house.call("slow", caller=ME)
    assert (output.status, output.ok) == ("partial", False)
    assert output.data == [{"number": number} for number in range(3)]
    assert output.error is not None
    assert output.error.code == "timed_out"
    [entry] = journal.calls
    assert (str(entry.state), entry.error_code) == (state, "timed_out")
    if effect == "irreversible":
        kept = orjson.loads(entry.result)
        assert (kept["status"], len(kept["data"])) == ("partial", 3)


@pytest.mark.req("X4")
async def test_a_timeout_before_the_first_piece_is_a_timeout() -> None:
    @tool(effect="pure", timeout=0.05)
    async def silent() -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield "never"

    async with in_memory(silent) as house:
        output = await house.call("silent", caller=ME)
    assert output.error is not None
    assert (output.status, output.data, output.error.code) == ("error", None, "timed_out")


@pytest.mark.req("X4")
async def test_a_stream_that_takes_no_notice_of_its_end_is_partial_all_the_same() -> None:
    @tool(effect="pure", timeout=0.05)
    async def stubborn() -> AsyncIterator[str]:
        yield "what I had"
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async with in_memory(stubborn) as house:
        output = await house.call("stubborn", caller=ME)
    assert (output.status, output.data) == ("partial", "what I had")


async def test_a_stream_fails_like_any_other_tool() -> None:
    @tool(effect="pure")
    async def fails(how: str) -> AsyncIterator[object]:
        yield "one"
        if how == "said":
            raise ToolError("no more")
        if how == "odd":
            yield object()
        raise ValueError("inside")

    async with in_memory(fails) as house:
        for how, code in (
            ("said", "tool_error"),
            ("odd", "invalid_output"),
            ("raised", "execution_failed"),
        ):
            output = await house.call("fails", {"how": how}, caller=ME)
            assert output.error is not None
            assert output.error.code == code


async def test_each_piece_can_be_heard_when_it_comes() -> None:
    heard: list[str] = []
    async with in_memory(words) as house:
        grant = await house.gate.decide(ME, "words", {}, None)
        executor = house._executor  # pyright: ignore[reportPrivateUsage]
        output = await executor.run(grant, {}, None, Asked(on_piece=heard.append))
    assert (heard, output.data) == (["one ", "two"], "one two")


def test_of_what_was_cut_off_no_more_is_kept_than_an_answer_holds() -> None:
    assert produced([], None) is None
    assert produced(["a"] * 10, 9) == "aaa"
    assert produced([[1, 2]] * 3, 10) == [[1, 2]] * 2
    assert produced(["long" * 10], 9) is None
    assert whole(["a", 1]) == ["a", 1]


@pytest.mark.req("X4", "P1")
async def test_a_stream_works_in_a_whole_house(tmp_path: Any) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(words)
        assert (await gate.call("words", caller=ME)).data == "one two"
