"""Revoke, then call at once, in four processes with warm caches: nothing may run."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from tests.house import open_gate
from toolgate import Toolgate
from toolgate.tenancy.layer import Layer

ROOT = Path(__file__).parents[2]
PROCESSES = 4
ROUNDS = int(os.environ.get("TOOLGATE_RACE_ROUNDS", "60"))


async def start(folder: Path, marks: Path, *options: str) -> list[Process]:
    command = (sys.executable, "-m", "tests.gate.racer", str(folder), str(marks), *options)
    racers = [
        await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
        for _ in range(PROCESSES)
    ]
    assert await answers(racers) == ["ready"] * PROCESSES
    return racers


async def answers(racers: list[Process]) -> list[str]:
    lines = await asyncio.gather(*(racer.stdout.readline() for racer in racers if racer.stdout))
    return [line.decode().strip() for line in lines]


async def call(racers: list[Process], race: str) -> list[str]:
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{race}\n".encode())
    return await answers(racers)


async def end(racers: list[Process]) -> None:
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
    await asyncio.gather(*(racer.wait() for racer in racers))


async def put(gate: Toolgate, number: int, *, enabled: bool) -> None:
    """A way to revoke for each round: the agent's, the tenant's, everyone's, a layer."""
    way = number % 4
    if way == 0:
        await gate.tenancy.activate("acme", "billing", "effect", enabled=enabled)
    elif way == 1:
        # Taken back, since a tenant's yes would stand against the no for everyone.
        await gate.tenancy.set_tenant_tool("acme", "effect", None if enabled else False)
    elif way == 2:
        await gate.tenancy.set_tool("effect", enabled)
    else:
        layer = None if enabled else Layer(deny=("effect",))
        await gate.tenancy.set_layer("shut", layer, tenant="acme")


async def run(gate: Toolgate, racers: list[Process], rounds: int) -> list[str]:
    """What the racers say right after each revoke. Before it, each has called and may."""
    said: list[str] = []
    for number in range(rounds):
        await put(gate, number, enabled=True)
        assert await call(racers, f"before-{number}") == ["allowed"] * PROCESSES
        await put(gate, number, enabled=False)
        said += await call(racers, f"after-{number}")
        await put(gate, number, enabled=True)
    return said


def marked(marks: Path, prefix: str) -> int:
    return sum(line.startswith(prefix) for line in marks.read_text().splitlines())


@pytest.mark.req("G8")
@pytest.mark.timeout(240)
async def test_calls_right_after_a_revoke_elsewhere_do_nothing(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    async with open_gate(tmp_path) as gate:
        gate.add(effect)
        racers = await start(tmp_path, marks)
        said = await run(gate, racers, ROUNDS)
        await end(racers)
    assert said == ["tool_not_found"] * (ROUNDS * PROCESSES)
    assert marked(marks, "before-") == ROUNDS * PROCESSES, "each was warm, and could"
    assert marked(marks, "after-") == 0


@pytest.mark.req("G8")
async def test_without_the_look_into_the_store_a_warm_cache_lets_some_through(
    tmp_path: Path,
) -> None:
    """The guard-off control."""
    marks = tmp_path / "marks"
    async with open_gate(tmp_path) as gate:
        gate.add(effect)
        racers = await start(tmp_path, marks, "unguarded")
        # An unguarded racer may still see the revoke of the round before.
        await put(gate, 0, enabled=True)
        assert await call(racers, "before-0") == ["allowed"] * PROCESSES
        await put(gate, 0, enabled=False)
        await call(racers, "after-0")
        await end(racers)
    assert marked(marks, "after-") > 0


async def effect(race: str) -> None:
    """Stands for the racers' tool, so that its flag is not taken for a typo."""
