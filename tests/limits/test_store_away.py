"""The store is taken away: what is held in memory is used up, and nothing is given on trust."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.limits.house import eventually, look, open_limited, outcome, put, send, used
from tests.servers.postgres import Postgres as Server
from tests.store.test_outage import nothing_can_be_written, stopped

pytestmark = pytest.mark.req("X9")


async def test_reads_use_up_what_is_held_and_side_effects_are_refused(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(look, put, send)
        await gate.tenancy.set_budget("acme", "tool_calls", 640)
        assert await outcome(gate, "look") == "success"
        with nothing_can_be_written():
            assert await outcome(gate, "put") == "store_unavailable"
            assert await outcome(gate, "send") == "store_unavailable"
            found = [await outcome(gate, "look") for _ in range(30)]
        # Ten were drawn at once, of which one was used before.
        assert found == ["success"] * 9 + ["store_unavailable"] * 21
        assert await outcome(gate, "put") == "success"
        assert await outcome(gate, "look") == "success"
        assert await used(gate) == 12


async def test_without_a_budget_reads_go_on_and_are_counted_later(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(look)
        with nothing_can_be_written():
            assert [await outcome(gate, "look") for _ in range(50)] == ["success"] * 50
        assert await used(gate) == 50


@pytest.fixture
def own() -> Generator[Server]:
    """A server that a test may take away."""
    with Server() as server:
        yield server


async def test_a_server_that_comes_back_finds_every_call_counted_once(
    own: Server, tmp_path: Path
) -> None:
    async with open_limited(tmp_path, url=own.dsn) as gate:
        gate.add(look, put)
        await gate.tenancy.set_budget("acme", "tool_calls", 640)
        passed = [await outcome(gate, "look") for _ in range(3)]
        with stopped(own):
            passed += [await outcome(gate, "look") for _ in range(3)]
            assert await outcome(gate, "put") == "store_unavailable"

        async def is_back() -> bool:
            passed.append(await outcome(gate, "put"))
            return passed[-1] == "success"

        await eventually(is_back)
        assert await used(gate) == passed.count("success")
