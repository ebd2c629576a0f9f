"""Stepping a call by hand changes nothing that a tool could notice."""

import asyncio
import contextvars
from collections.abc import Generator
from typing import Any

import pytest

from tests.house import ME
from toolgate import Toolgate, tool
from toolgate.stepped import rest

place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="nowhere")


async def test_a_tool_sees_the_callers_task_and_context(gate: Toolgate) -> None:
    @tool(effect="pure")
    async def look() -> dict[str, Any]:
        first = (place.get(), id(asyncio.current_task()))
        await asyncio.sleep(0)
        assert first == (place.get(), id(asyncio.current_task()))
        return {"place": first[0], "task": str(first[1])}

    @tool(effect="pure")
    def look_in_a_thread() -> str:
        return place.get()

    gate.add(look, look_in_a_thread)
    token = place.set("here")
    try:
        seen = (await gate.call("look", caller=ME)).data
        assert seen == {"place": "here", "task": str(id(asyncio.current_task()))}
        assert (await gate.call("look_in_a_thread", caller=ME)).data == "here"
    finally:
        place.reset(token)


async def test_a_task_group_in_a_tool_works_and_its_failure_is_told(gate: Toolgate) -> None:
    @tool(effect="pure")
    async def grouped(fail: bool) -> list[int]:  # noqa: FBT001
        async def one(number: int) -> int:
            await asyncio.sleep(0)
            if fail and number == 1:
                raise ValueError("one of them")
            return number

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number)) for number in range(3)]
        return [task.result() for task in tasks]

    gate.add(grouped)
    assert (await gate.call("grouped", {"fail": False}, caller=ME)).data == [0, 1, 2]
    output = await gate.call("grouped", {"fail": True}, caller=ME)
    assert output.error is not None
    assert "ExceptionGroup" in output.error.message


class TestRest:
    """`rest` against what `await` itself would do."""

    @staticmethod
    async def stepped(work: Any) -> Any:
        try:
            waiting = work.send(None)
        except StopIteration as done:
            return done.value
        return await rest(work, waiting)

    async def test_it_returns_what_the_coroutine_returns_after_many_waits(self) -> None:
        async def work() -> int:
            total = 0
            for number in range(5):
                await asyncio.sleep(0)
                total += await asyncio.sleep(0, number)
            return total

        assert await self.stepped(work()) == 10

    async def test_an_exception_comes_out_as_it_went_in(self) -> None:
        async def work() -> None:
            await asyncio.sleep(0)
            raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            await self.stepped(work())

    async def test_an_exception_thrown_in_can_be_caught_inside(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> str:
            try:
                await future
            except LookupError:
                await asyncio.sleep(0)
                return "caught"
            return ""

        asyncio.get_running_loop().call_soon(future.set_exception, LookupError())
        assert await self.stepped(work()) == "caught"

    def test_closing_it_closes_the_coroutine_and_runs_what_stands_in_finally(self) -> None:
        steps: list[str] = []

        class Pause:
            def __await__(self) -> Generator[str, None, None]:
                yield "paused"

        async def work() -> None:
            try:
                await Pause()
            finally:
                steps.append("closed")

        async def outer() -> None:
            coroutine = work()
            await rest(coroutine, coroutine.send(None))

        driven = outer()
        assert driven.send(None) == "paused"
        driven.close()
        assert steps == ["closed"]

    def test_what_is_sent_and_thrown_reaches_the_coroutine(self) -> None:
        class Ask:
            def __await__(self) -> Generator[str, Any, Any]:
                return (yield "asked")

        async def work() -> list[Any]:
            first = await Ask()
            try:
                await Ask()
            except LookupError as error:
                return [first, str(error), await Ask()]
            return []

        async def outer() -> list[Any]:
            coroutine = work()
            return await rest(coroutine, coroutine.send(None))

        driven = outer()
        assert driven.send(None) == "asked"
        assert driven.send("one") == "asked"
        assert driven.throw(LookupError("two")) == "asked"
        with pytest.raises(StopIteration) as done:
            driven.send("three")
        assert done.value.value == ["one", "two", "three"]
