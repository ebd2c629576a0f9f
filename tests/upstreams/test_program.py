"""A server that is a program: begun, talked to, and never left behind."""

import asyncio
import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import until
from tests.servers import sandboxes
from tests.servers.fixtures import needed
from tests.upstreams.bare import ROOT, Bare, program
from toolgate.errors import ProviderUnavailable, ToolgateError
from toolgate.sandbox.choosing import chosen
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.probing import interpreter
from toolgate.settings.outward import Sandbox as Settings
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.upstream import Kind

# `make chaos` sets how long such runs are.
CYCLES = 1_000 if os.environ.get("TOOLGATE_CHAOS") else 20


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def held() -> int:
    """Bytes of memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def children() -> set[int]:
    """All that runs below this process, or has ended and was not waited for."""
    return {
        int(child)
        for listed in Path("/proc/self/task").glob("*/children")
        for child in listed.read_text().split()
    }


async def cycled(make: Callable[[], Connected], forget: Callable[[], None]) -> None:
    """Begin, ask and end one after the other; what is held in the middle is held at the end."""
    kept: list[tuple[int, int, int]] = []
    before = children()
    for number in range(CYCLES):
        upstream = make()
        await upstream.open(20)
        assert (await upstream.call("ok", {}, seconds=5))["content"][0]["text"] == "ok"
        if number % 2:
            # Every second one is ended in the middle of a call.
            call = asyncio.create_task(upstream.call("no answer", {}, seconds=30))
            await asyncio.sleep(0)
            await upstream.close()
            with pytest.raises(ToolgateError):
                await call
        else:
            await upstream.close()
        del upstream
        if number in {CYCLES // 2, CYCLES - 1}:
            await asyncio.sleep(0)
            forget()
            gc.collect()
            kept.append((descriptors(), len(gc.get_objects()), held()))
    assert children() == before
    assert kept[1][0] == kept[0][0]
    assert kept[1][1] < kept[0][1] * 1.05
    # Two megabytes are what an allocator may do.
    assert kept[1][2] < kept[0][2] + 2_000_000
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.req("P2")
@pytest.mark.timeout(600 if CYCLES > 20 else 60)
async def test_start_and_stop_leave_no_process_no_pipe_and_no_object() -> None:
    sandbox = Bare()
    await cycled(lambda: program(sandbox=sandbox), sandbox.policies.clear)
    assert not [pid for pid in sandbox.pids if runs(pid)]


@pytest.mark.req("P2", "P4")
@pytest.mark.timeout(600 if CYCLES > 20 else 60)
async def test_neither_do_they_in_the_sandbox() -> None:
    needed(sandboxes.bubblewrap)
    sandbox = await chosen(Settings(kind="bubblewrap"))
    shown = Policy(readable=(str(ROOT / "tests" / "upstreams"), *interpreter()))
    await cycled(lambda: program(sandbox=sandbox, policy=shown), lambda: None)


@pytest.mark.req("P2")
async def test_a_program_that_cannot_begin_is_away_and_says_why_to_the_operator_only() -> None:
    upstream = program("start: exits", sandbox=Bare(), secrets={"LICENCE": "KEY-123"})
    await upstream.open(20)
    with pytest.raises(ProviderUnavailable) as refused:
        await upstream.call("ok", {}, seconds=1)
    assert "no licence for •••" in upstream.problem
    assert "exit code 7" in upstream.problem
    assert len(upstream.last_words) == 20, "what led to it is kept too, and not without end"
    assert upstream.last_words[-2:] == ("step 29 [31m", "no licence for •••")
    assert "licence" not in refused.value.message
    assert "Nothing ran" in refused.value.message
    await upstream.close()


@pytest.mark.req("P2")
async def test_a_program_that_dies_of_the_newer_question_is_asked_the_older_way() -> None:
    sandbox = Bare()
    upstream = program("start: dies of the first question", sandbox=sandbox)
    await upstream.open(20)
    await until(lambda: not upstream.problem)
    assert upstream.revision == "2025-11-25"
    assert len(sandbox.pids) == 2
    await upstream.close()


@pytest.mark.req("P2")
async def test_a_revision_that_nobody_knows_is_not_spoken() -> None:
    upstream = program("start: unknown revision", sandbox=Bare())
    await upstream.open(20)
    assert "1999-01-01" in upstream.problem
    await upstream.close()


@pytest.mark.req("P2")
async def test_who_is_closed_while_it_begins_leaves_nothing() -> None:
    sandbox = Bare()
    upstream = program("start: silent", sandbox=sandbox)
    await upstream.open(0.2)
    await until(lambda: bool(sandbox.pids))
    await upstream.close()
    assert not runs(sandbox.pids[0])


@pytest.mark.req("P2")
async def test_its_environment_is_what_it_was_given() -> None:
    sandbox = Bare()
    upstream = program(sandbox=sandbox, secrets={"TOKEN": "t-1"})
    await upstream.open(20)
    assert sandbox.policies[0].env == {"PATH": os.environ.get("PATH", ""), "TOKEN": "t-1"}
    await upstream.close()


@pytest.mark.req("P2")
async def test_a_list_without_an_end_is_refused_and_a_storm_is_told_once() -> None:
    told: list[Kind] = []
    upstream = program(sandbox=Bare())
    await upstream.open(20)
    assert [one["name"] for one in await upstream.listed(Kind.TOOLS)] == ["ok"]
    with pytest.raises(ProviderUnavailable, match="no end"):
        await upstream.listed(Kind.RESOURCES)
    upstream.on_changed(told.append)
    await upstream.call("storm", {}, seconds=10)
    await until(lambda: bool(told))
    assert len(told) < 5
    assert await upstream.listed(Kind.PROMPTS) == ()
    await upstream.close()


@pytest.mark.req("P2")
async def test_who_gives_up_tells_the_program() -> None:
    upstream = program(sandbox=Bare())
    await upstream.open(20)
    call = asyncio.create_task(upstream.call("no answer", {}, seconds=30))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await upstream.call("cancelled", {}, seconds=5))["content"][0]["text"] == "1"
    await upstream.close()
