"""A machine whose clock is far from the database's claims nothing."""

import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.servers.postgres import Postgres as Server
from tests.store.places import fresh_url
from tests.undo.shop import lost
from toolgate import Caller, Toolgate, Turn, clock, tool
from toolgate.errors import StoreUnavailable
from toolgate.settings.settings import Settings, Store

pytestmark = pytest.mark.req("S3")
ME = Caller(tenant="acme", agent="billing")
SIX_SECONDS = 6_000_000_000
ran: list[str] = []


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send."""
    ran.append(to)
    return to


@tool(effect="pure")
async def look(at: str) -> str:
    """Look."""
    return at


@asynccontextmanager
async def opened(server: Server, folder: Path) -> AsyncGenerator[Toolgate]:
    async with (
        fresh_url(server) as url,
        Toolgate.open(Settings(store=Store(url=url), root=folder)) as gate,
    ):
        yield gate


@pytest.mark.parametrize("ahead", [SIX_SECONDS, -SIX_SECONDS])
async def test_clocks_that_are_far_apart_stop_side_effects_and_not_reads(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    ran.clear()
    real = clock.unix_ns
    async with opened(postgres, tmp_path) as gate:
        gate.add(send, look)
        monkeypatch.setattr(clock, "unix_ns", lambda: real() + ahead)
        assert (await gate.call("look", {"at": "it"}, caller=ME)).ok
        with pytest.raises(StoreUnavailable, match="6 s apart"):
            await gate.call("send", {"to": "bob"}, caller=ME, turn=Turn(group="t"))
    assert ran == []


async def test_a_few_seconds_are_no_reason_to_stop(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran.clear()
    real = clock.unix_ns
    async with opened(postgres, tmp_path) as gate:
        gate.add(send)
        monkeypatch.setattr(clock, "unix_ns", lambda: real() + 3_000_000_000)
        assert (await gate.call("send", {"to": "bob"}, caller=ME, turn=Turn(group="t"))).ok
    assert ran == ["bob"]


@tool(effect="compensatable", compensation={"tool": "unsend", "args": {"to": "$args.to"}})
async def post(to: str) -> str:
    """Send what can be taken back."""
    ran.append(to)
    return to


@tool(effect="irreversible")
async def unsend(to: str) -> str:
    """Take it back."""
    ran.append(f"not {to}")
    return to


@pytest.mark.parametrize(("ahead", "taken"), [(SIX_SECONDS, False), (0, True)])
async def test_clocks_that_are_far_apart_stop_taking_over_and_taking_back(
    postgres: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ahead: int,
    taken: bool,  # noqa: FBT001
) -> None:
    ran.clear()
    real = clock.unix_ns
    async with opened(postgres, tmp_path) as gate:
        gate.add(send, post, unsend)
        sent = await gate.call("send", {"to": "ann"}, caller=ME, turn=Turn(group="t"))
        done = await gate.call("post", {"to": "bob"}, caller=ME, turn=Turn(group="t"))
        monkeypatch.setattr(clock, "unix_ns", lambda: real() + ahead)
        left = await lost(gate, sent.call_id, caller=ME)
        await gate.recovery.sweep()
        entry = await gate.ledger.find("acme", sent.call_id)
        assert entry is not None
        assert entry.fence == left.fence + taken
        with contextlib.nullcontext() if taken else pytest.raises(StoreUnavailable, match="apart"):
            assert (await gate.undo(caller=ME, call_id=done.call_id)).ok
    assert ran == ["ann", "bob", *(["not bob"] if taken else [])]
