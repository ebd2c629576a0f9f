"""Processes that compute for tools: warm, apart, and gone when they take too long."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.house import until
from tests.tools.means import no_sandbox
from toolgate.errors import ProviderUnavailable, ToolError
from toolgate.sandbox.policy import MEGABYTE
from toolgate.tools.working.pool import Workers

HERE = "toolgate.testing.working:"


@pytest.fixture
async def workers() -> AsyncGenerator[Workers]:
    """None is started yet."""
    found = Workers(no_sandbox, memory=256 * MEGABYTE)
    yield found
    await found.close()


async def test_a_worker_is_asked_again_and_sees_nothing_of_ours(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_OURS", "hush")
    value = {"a": [1, 2.5, None, "é"]}
    assert await workers.run(HERE + "echo", {"value": value}, seconds=30) == value
    one = await workers.run(HERE + "surroundings", {}, seconds=30)
    two = await workers.run(HERE + "surroundings", {}, seconds=30)
    assert one["pid"] == two["pid"] != os.getpid()
    assert "A_SECRET_OF_OURS" not in one["environment"]


async def test_a_mistake_is_told_and_one_of_ours_is_not(workers: Workers) -> None:
    with pytest.raises(ToolError, match="Write it like this"):
        await workers.run(HERE + "refuse", {"message": "Write it like this."}, seconds=30)
    with pytest.raises(RuntimeError, match=r"^KeyError$"):
        await workers.run(HERE + "fail", {}, seconds=30)
    with pytest.raises(RuntimeError):
        await workers.run("os:getcwd", {}, seconds=30)
    assert await workers.run(HERE + "echo", {"value": 1}, seconds=30) == 1


async def test_who_takes_too_long_is_ended_and_the_next_is_fine(workers: Workers) -> None:
    pid = (await workers.run(HERE + "surroundings", {}, seconds=30))["pid"]
    with pytest.raises(ToolError, match="Ask for less"):
        await workers.run(HERE + "linger", {"seconds": 50}, seconds=0.2)
    await until(lambda: not Path(f"/proc/{pid}").exists())
    assert await workers.run(HERE + "echo", {"value": 2}, seconds=30) == 2


async def test_who_takes_too_much_is_refused(workers: Workers) -> None:
    assert await workers.run(HERE + "grow", {"megabytes": 16}, seconds=30) == 16 * MEGABYTE
    with pytest.raises(ToolError, match="memory"):
        await workers.run(HERE + "grow", {"megabytes": 1_000}, seconds=30)
    assert await workers.run(HERE + "echo", {"value": 3}, seconds=30) == 3


async def test_who_is_no_longer_waited_for_does_not_go_on(workers: Workers) -> None:
    pid = (await workers.run(HERE + "surroundings", {}, seconds=30))["pid"]
    task = asyncio.create_task(workers.run(HERE + "linger", {"seconds": 50}, seconds=60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await workers.close()
    await until(lambda: not Path(f"/proc/{pid}").exists())
    with pytest.raises(ProviderUnavailable):
        await workers.run(HERE + "echo", {"value": 4}, seconds=30)
