"""A store that is cut off or locked at any moment of a call: once, or a clean refusal."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.once.wire import wired
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from toolgate import Caller, Toolgate, tool
from toolgate.errors import StoreUnavailable, ToolgateError
from toolgate.settings.execution import Toolbox
from toolgate.settings.settings import Settings, Store

pytestmark = [pytest.mark.req("S2", "S3"), pytest.mark.timeout(120)]
ME = Caller(tenant="acme", agent="clerk")
done: list[str] = []


@tool(effect="irreversible")
async def pay(to: str) -> int:
    """Pay."""
    done.append(to)
    return len(done)


async def paid(gate: Toolgate, to: str, **more: Any) -> Any:
    try:
        return await gate.call("pay", {"to": to}, caller=ME, idempotency_key=to, **more)
    except ToolgateError as error:
        return error


@pytest.mark.parametrize("heard", [True, False], ids=["answer lost", "question lost"])
async def test_a_connection_that_breaks_at_any_message_does_it_once_or_refuses_cleanly(
    postgres: Server, tmp_path: Path, *, heard: bool
) -> None:
    done.clear()
    async with lent_url(postgres) as url, wired(postgres.port) as wire:
        through = url.replace(f":{postgres.port}/", f":{wire.port}/")
        settings = Settings(root=tmp_path, store=Store(url=through), toolbox=Toolbox(lease=1))
        async with Toolgate.open(settings) as gate:
            gate.add(pay)
            assert (await paid(gate, "warm")).ok
            broke, at, seen = True, 0, set[str]()
            while broke and at < 60:
                at += 1
                key = f"k{at}"
                wire.arm(at, heard=heard)
                first = await paid(gate, key)
                broke = wire.broke
                wire.disarm()
                ran = done.count(key)
                assert ran <= 1
                if isinstance(first, ToolgateError):
                    assert ran == 0, "what is refused did not run"
                again = await paid(gate, key, wait_s=20)
                assert done.count(key) <= 1, (first, again)
                seen.add(again.status)
                assert again.status in {"success", "unknown"}, (first, again)
                if not isinstance(first, ToolgateError) and first.ok:
                    assert (again.cached, again.data) == (True, first.data)
            assert not broke, "it was broken at every message of a call"
            assert at > 2, "the claim and the end"
            assert "success" in seen


async def test_a_file_that_others_hold_locked_lets_nothing_happen(tmp_path: Path) -> None:
    done.clear()
    settings = Settings(root=tmp_path, toolbox=Toolbox(default_timeout=1))
    async with Toolgate.open(settings) as gate:
        gate.add(pay)
        file = tmp_path / ".toolgate" / "toolgate.db"
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            refused = await asyncio.gather(*(paid(gate, f"k{one}") for one in range(8)))
            assert all(isinstance(one, StoreUnavailable) for one in refused), refused
            assert done == []
            other.execute("ROLLBACK")
        outputs = await asyncio.gather(*(paid(gate, f"k{one}") for one in range(8)))
        assert all(one.ok for one in outputs), outputs
        assert sorted(done) == [f"k{one}" for one in range(8)]
