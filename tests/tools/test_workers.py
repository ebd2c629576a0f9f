"""Processes that compute for tools: warm, apart, and gone when they take too long."""

import asyncio
import os
import stat
import threading
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.house import until
from tests.tools.means import no_sandbox
from toolgate.errors import Overloaded, ProviderUnavailable, ToolError
from toolgate.executor.resilience import places
from toolgate.sandbox.policy import MEGABYTE
from toolgate.tools.system.threaded import threaded
from toolgate.tools.working import pool
from toolgate.tools.working.compiled import Compiled
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


def test_a_worker_has_nothing_open_that_is_open_here() -> None:
    async def looked(ours: Path) -> bool:
        workers = Workers(no_sandbox, memory=256 * MEGABYTE)
        try:
            pid = (await workers.run(HERE + "surroundings", {}, seconds=30))["pid"]
            there = Path(f"/proc/{pid}/fd").iterdir()  # noqa: ASYNC240
            return ours in {one.readlink() for one in there}
        finally:
            await workers.close()

    reading, writing = os.pipe()
    try:
        os.set_inheritable(reading, True)  # noqa: FBT003
        # As a server runs: its loop starts processes in its own way.
        assert not uvloop.run(looked(Path(f"/proc/self/fd/{reading}").readlink()))
    finally:
        os.close(reading)
        os.close(writing)


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


class Whose:
    """Whose call it is, in place of the one around."""

    name = "acme"


@pytest.fixture
def whose(monkeypatch: pytest.MonkeyPatch) -> type[Whose]:
    Whose.name = "acme"
    monkeypatch.setattr(places, "tenant", lambda: Whose.name)
    return Whose


async def _lingering(workers: Workers, count: int) -> list[asyncio.Task[object]]:
    work = [workers.run(HERE + "linger", {"seconds": 50}, seconds=60) for _ in range(count)]
    tasks = [asyncio.create_task(one) for one in work]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def _ended(tasks: list[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_tenant_leaves_workers_for_another(workers: Workers, whose: type[Whose]) -> None:
    tasks = await _lingering(workers, 8)
    whose.name = "globex"
    assert await workers.run(HERE + "echo", {"value": 5}, seconds=30) == 5
    assert not any(one.done() for one in tasks)
    await _ended(tasks)


def _unshared(most: int, **_: int) -> places.Places:
    return places.Places(most, each=most, waiting=9)


async def test_without_shares_it_would_leave_none(
    whose: type[Whose], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "Places", _unshared)
    workers = Workers(no_sandbox, memory=256 * MEGABYTE)
    tasks = await _lingering(workers, 8)
    whose.name = "globex"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await workers.run(HERE + "echo", {"value": 5}, seconds=30)
    await _ended(tasks)
    await workers.close()


async def test_one_tenants_queue_has_an_end_of_its_own(
    whose: type[Whose], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_WAITING", 2)
    workers = Workers(no_sandbox, memory=256 * MEGABYTE)
    tasks = await _lingering(workers, 2 + pool._MOST // 2)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(Overloaded):
        await workers.run(HERE + "echo", {"value": 6}, seconds=30)
    whose.name = "globex"
    assert await workers.run(HERE + "echo", {"value": 6}, seconds=30) == 6
    await _ended(tasks)
    await workers.close()


async def test_bytes_go_to_a_worker_and_back_as_they_are(workers: Workers) -> None:
    content = bytes(range(256)) * 4_000
    found = await workers.ask(HERE + "mirror", {"by": 2}, seconds=30, content=content)
    assert found == ({"size": len(content)}, content * 2)
    empty = await workers.ask(HERE + "mirror", {"by": 1}, seconds=30, content=b"")
    assert empty == ({"size": 0}, b"")


async def test_a_result_that_would_hold_up_the_loop_is_refused_where_it_is_made(
    workers: Workers,
) -> None:
    assert (
        len(await workers.run(HERE + "repeat", {"value": 1, "by": 100_000}, seconds=30)) == 100_000
    )
    with pytest.raises(ToolError, match="Ask for less"):
        await workers.run(HERE + "repeat", {"value": "a" * 99, "by": 50_000}, seconds=30)
    with pytest.raises(ToolError, match="lists and objects"):
        await workers.run(HERE + "repeat", {"value": {}, "by": 300_000}, seconds=30)


async def test_one_tenants_files_leave_threads_for_anothers(whose: type[Whose]) -> None:
    go = threading.Event()
    tasks = [asyncio.create_task(threaded(go.wait, 30)) for _ in range(40)]
    for _ in range(3):
        await asyncio.sleep(0)
    whose.name = "globex"
    assert await threaded(lambda: "read") == "read"
    assert not any(one.done() for one in tasks)
    go.set()
    assert all(await asyncio.gather(*tasks))


LOOP = "toolgate.tools.native.sampling"


@pytest.mark.req("T5")
async def test_compiled_loops_outlast_their_process(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="skipped: no tools")
    args = {
        "expression": "x + 1",
        "variables": {"x": {"distribution": "normal", "mean": 0, "std": 1}},
        "samples": 1_000,
        "tolerance": 0.0,
        "seed": 0,
        "percentiles": [50],
        "bins": 0,
    }
    told: list[Any] = []
    for _ in range(2):
        workers = Workers(no_sandbox, kept=tmp_path)
        told.append(await workers.run(f"{LOOP}:simulate", args, seconds=50))
        await workers.close()
        told.append([(one, one.stat().st_mtime_ns) for one in (tmp_path / "compiled").iterdir()])
    assert told[:2] == told[2:]
    [kept] = (tmp_path / "compiled").iterdir()
    assert [stat.S_IMODE(one.stat().st_mode) for one in (kept.parent, kept)] == [0o700, 0o600]
    with zipfile.ZipFile(kept) as archive:
        assert any(name.endswith(".nbc") for name in archive.namelist())


def test_what_others_could_have_written_is_not_run(tmp_path: Path) -> None:
    kept = Compiled(tmp_path)
    kept.keep(LOOP, b"code")
    assert kept.read(LOOP) == b"code"
    [file] = (tmp_path / "compiled").iterdir()
    for path, mode in ((file, 0o660), (file.parent, 0o770)):
        before = path.stat().st_mode
        path.chmod(mode)
        assert kept.read(LOOP) is None
        path.chmod(before)
    assert kept.read(LOOP) == b"code"
    # Nor what a link leads to, and nothing is kept in a folder that is one.
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert kept.read(LOOP) is None
    file.unlink()
    (tmp_path / "compiled").rename(tmp_path / "moved")
    (tmp_path / "compiled").symlink_to(tmp_path / "moved")
    kept.keep(LOOP, b"code")
    assert kept.read(LOOP) is None
    assert list((tmp_path / "moved").iterdir()) == []
