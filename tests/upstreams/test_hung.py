"""A server that hangs is told from one that is slow, ended, and begun anew."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house import until
from tests.servers import sandboxes
from tests.servers.fixtures import needed
from tests.upstreams.bare import ROOT, Bare, address, program
from tests.upstreams.misbehaving import serving
from tests.upstreams.test_faults import healed
from tests.upstreams.test_program import children, runs
from toolgate.errors import ExecutionFailed, ProviderUnavailable, TimedOut
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.sandbox.choosing import chosen
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.probing import interpreter
from toolgate.settings.outward import Sandbox as Settings
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.pulse import Pulse
from toolgate.upstreams.wire import Wire

pytestmark = pytest.mark.req("P2")
# More than a pipe holds.
MUCH = {"text": "x" * 2_000_000}


def watched(upstream: Connected) -> list[str]:
    """What was wrong with it whenever it said that something has changed."""
    found: list[str] = []
    upstream.on_changed(lambda _kind: found.append(upstream.problem))
    return found


def below(pid: int) -> Iterator[int]:
    """A process and all that it has started."""
    yield pid
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listed.read_text().split():
            yield from below(int(child))


async def text(upstream: Connected, tool: str) -> str:
    return (await upstream.call(tool, {}, seconds=10))["content"][0]["text"]


async def test_a_program_that_hangs_is_ended_and_begun_anew() -> None:
    sandbox = Bare()
    upstream = program(sandbox=sandbox, timeout=0.5)
    await upstream.open(20)
    told = watched(upstream)
    os.kill(sandbox.pids[0], signal.SIGSTOP)
    waiting = asyncio.create_task(upstream.call("ok", {}, seconds=60))
    with pytest.raises(TimedOut):
        await upstream.call("ok", {}, seconds=0.1)
    with pytest.raises(ExecutionFailed, match="hangs"):
        await waiting
    assert any("it hangs" in problem for problem in told), "its tools are hidden or marked"
    assert await healed(upstream) == "ok"
    assert len(sandbox.pids) == 2
    assert not runs(sandbox.pids[0])
    assert upstream.problem == ""
    await upstream.close()


async def test_so_is_one_whose_caller_gave_up_earlier() -> None:
    sandbox = Bare()
    upstream = program(sandbox=sandbox, timeout=0.5)
    await upstream.open(20)
    os.kill(sandbox.pids[0], signal.SIGSTOP)
    call = asyncio.create_task(upstream.call("ok", {}, seconds=60))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: len(sandbox.pids) == 2)
    assert await healed(upstream) == "ok"
    await upstream.close()


async def test_what_a_program_that_hangs_did_not_take_has_not_happened() -> None:
    sandbox = Bare()
    upstream = program(sandbox=sandbox, timeout=1)
    await upstream.open(20)
    os.kill(sandbox.pids[0], signal.SIGSTOP)
    begun = asyncio.create_task(upstream.call("ok", MUCH, seconds=60))
    await asyncio.sleep(0)
    behind = asyncio.create_task(upstream.call("ok", {}, seconds=60))
    with pytest.raises(ProviderUnavailable, match=r"takes nothing for now\. Nothing ran"):
        await upstream.call("ok", {}, seconds=0.1)
    with pytest.raises(ExecutionFailed):
        await begun
    with pytest.raises(ProviderUnavailable, match="Nothing ran"):
        await behind
    assert await healed(upstream) == "ok"
    await upstream.close()


async def test_nothing_is_left_of_one_that_hangs_in_the_sandbox() -> None:
    needed(sandboxes.bubblewrap)
    sandbox = await chosen(Settings(kind="bubblewrap"))
    shown = Policy(readable=(str(ROOT / "tests" / "upstreams"), *interpreter()))
    before = children()
    upstream = program(sandbox=sandbox, policy=shown, timeout=0.5)
    await upstream.open(20)
    (outer,) = children() - before
    started = list(below(outer))
    for pid in started:
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(TimedOut):
        await upstream.call("ok", {}, seconds=0.1)
    await until(lambda: not any(map(runs, started)))
    assert await healed(upstream) == "ok"
    await upstream.close()
    assert children() == before


async def test_a_slow_tool_of_a_server_that_is_there_ends_nobody() -> None:
    sandbox = Bare()
    upstream = program(sandbox=sandbox, timeout=0.5)
    await upstream.open(20)
    told = watched(upstream)
    waiting = asyncio.create_task(upstream.call("no answer", {}, seconds=60))
    for count in range(1, 4):
        with pytest.raises(TimedOut):
            await upstream.call("no answer", {}, seconds=0.1)
        async with asyncio.timeout(10):
            while int(await text(upstream, "pinged")) < count:
                pass
    assert not waiting.done()
    waiting.cancel()
    assert len(sandbox.pids) == 1
    assert told == []
    await upstream.close()


async def test_one_that_comes_to_the_question_late_and_answers_others_is_there() -> None:
    sandbox = Bare()
    # Each takes less than it may be silent, all of them before the question more.
    upstream = program(sandbox=sandbox, timeout=1)
    await upstream.open(20)
    calls = [upstream.call("slow", {}, seconds=0.1) for _ in range(8)]
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(outcome, TimedOut)
    assert await text(upstream, "ok") == "ok"
    assert len(sandbox.pids) == 1
    await upstream.close()


async def test_an_address_that_takes_all_and_answers_nothing_is_away_until_it_does() -> None:
    client = HttpClient(Guard())
    async with serving() as server:
        upstream = address(server.port, client, timeout=0.5)
        await upstream.open()
        told = watched(upstream)
        server.answers.clear()
        with pytest.raises(TimedOut):
            await upstream.call("ok", {}, seconds=0.1)
        await until(lambda: "it hangs" in upstream.problem)
        assert any("it hangs" in problem for problem in told)
        with pytest.raises(ProviderUnavailable, match="Nothing ran"):
            await upstream.call("ok", {}, seconds=0.1)
        server.answers.set()
        assert await healed(upstream) == "ok"
        # The control: where only one tool is silent, the server stays.
        count = len(server.sessions)
        with pytest.raises(TimedOut):
            await upstream.call("no answer", {}, seconds=0.1)
        await until(lambda: any(said.get("method") == "ping" for _, said, _ in server.heard[-3:]))
        assert await healed(upstream) == "ok"
        assert len(server.sessions) == count
        await upstream.close()
    await client.close()


async def test_without_the_question_one_that_hangs_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard-off control of those above."""

    def believed(_pulse: Pulse, _wire: Wire, *, is_modern: bool) -> None:
        """Nobody is asked anything."""

    monkeypatch.setattr(Pulse, "doubt", believed)
    sandbox = Bare()
    upstream = program(sandbox=sandbox, timeout=0.1)
    await upstream.open(20)
    os.kill(sandbox.pids[0], signal.SIGSTOP)
    for _ in range(5):
        with pytest.raises(TimedOut):
            await upstream.call("ok", {}, seconds=0.2)
    assert len(sandbox.pids) == 1
    assert upstream.problem == ""
    await upstream.close()
