"""Yesterday's copy of a store does nothing by itself until an operator has accepted it."""

import asyncio
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.blank import put_blank
from tests.house import ME, STORE, until
from tests.server.serving import COMMAND, Serving
from tests.undo import child
from tests.undo.test_killed import killed
from toolgate import Toolgate, tool
from toolgate.errors import StoreQuarantined
from toolgate.ledger.state import State
from toolgate.settings.execution import Toolbox
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Settings
from toolgate.store import audit, lineage
from toolgate.store.database import HOUSE, Database
from toolgate.store.hold import Hold
from toolgate.store.lineage import Lineage
from toolgate.store.records import audit_log
from toolgate.store.sqlite import Sqlite

LEASE = 1.0
WITNESS = STORE.with_name("toolgate.db.seen")


class Shop:
    """A folder with a store, tools whose effects are lines of a file, and copies of the store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.go = asyncio.Event()
        self.copied = 0.0
        put_blank(root / STORE)

    def settings(self, work: str = "auto") -> Settings:
        return Settings(
            root=self.root,
            toolbox=Toolbox(lease=LEASE),
            queue=Fleet(work=work),  # pyright: ignore[reportArgumentType]
        )

    def effects(self) -> list[str]:
        return child.effects(self.root)

    def tools(self) -> list[Callable[..., Any]]:
        def did(what: str) -> None:
            with (self.root / "effects").open("a", encoding="utf-8") as file:
                file.write(f"{what}\n")

        @tool(effect="idempotent")
        async def put(text: str) -> str:
            did(f"put:{text}")
            await self.go.wait()
            return text

        @tool(effect="irreversible", execution="queued")
        async def send(text: str) -> str:
            did(f"send:{text}")
            return text

        @tool(effect="pure")
        async def look() -> str:
            return "seen"

        return [put, send, look]

    def copy(self) -> None:
        """As a backup does it: while it is in use, and whole."""
        with (
            closing(sqlite3.connect(self.root / STORE)) as here,
            closing(sqlite3.connect(self.root / "yesterday.db")) as there,
        ):
            here.backup(there)
        self.copied = time.monotonic()

    def restore(self) -> None:
        for left in (self.root / STORE).parent.glob("*.db-*"):
            left.unlink()
        shutil.copyfile(self.root / "yesterday.db", self.root / STORE)

    def restore_into(self) -> None:
        """As a backup is brought back under a process that has the store open."""
        with (
            closing(sqlite3.connect(self.root / "yesterday.db")) as here,
            closing(sqlite3.connect(self.root / STORE)) as there,
        ):
            here.backup(there)

    async def overdue(self) -> None:
        """Whatever ran when the copy was made is lost by now."""
        await until(lambda: time.monotonic() > self.copied + LEASE + 0.1)


@pytest.fixture
async def shop(tmp_path: Path) -> Shop:
    """A copy with an open call and a queued one, both done since; and the copy brought back."""
    made = Shop(tmp_path)
    async with Toolgate.open(made.settings("never")) as gate:
        gate.add(*made.tools())
        open_ = asyncio.create_task(gate.call("put", {"text": "a"}, caller=ME))
        queued = await gate.call("send", {"text": "b"}, caller=ME, wait_s=0)
        assert queued.status == "queued"
        await until(lambda: made.effects() == ["put:a"])
        made.copy()
        made.go.set()
        assert (await open_).ok
    async with Toolgate.open(made.settings()) as gate:
        gate.add(*made.tools())
        await until(lambda: made.effects() == ["put:a", "send:b"])
    made.restore()
    return made


@pytest.mark.req("S3")
async def test_yesterdays_copy_begins_nothing_until_it_is_accepted_and_then_goes_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "_EVERY", 0.05)
    async with Toolgate.open(shop.settings()) as gate:
        gate.add(*shop.tools())
        await shop.overdue()
        await gate.recovery.sweep()
        assert await gate.queue.calls.take(10, LEASE) == []
        with pytest.raises(StoreQuarantined, match="toolgate store accept"):
            await gate.call("put", {"text": "c"}, caller=ME)
        with pytest.raises(StoreQuarantined):
            await gate.call("send", {"text": "c"}, caller=ME, wait_s=0)
        # What changes nothing is answered; also its record ends no quarantine.
        for _ in range(50):
            assert (await gate.call("look", caller=ME)).data == "seen"
            await gate.journal.drain()
    async with Toolgate.open(shop.settings()) as gate:
        assert "an older copy was brought back" in gate.held()
        gate.add(*shop.tools())
        await gate.recovery.sweep()
        assert shop.effects() == ["put:a", "send:b"]
        told = command(shop.root, "store", "accept", "--why", "the disk is new")
        assert (told.returncode, told.stderr) == (0, "")
        await until(lambda: not gate.held())
        await until(lambda: len(shop.effects()) == 4)
        assert sorted(shop.effects()[2:]) == ["put:a", "send:b"]
        records = await gate.tenancy.audit(limit=1_000)
        (accepted,) = [one for one in records if one.change == lineage.ACCEPTED]
        assert accepted.why == "the disk is new"
        assert accepted.who.startswith("cli:")
    async with Toolgate.open(shop.settings()) as gate:
        assert gate.held() == ""


async def test_without_a_witness_the_same_copy_does_it_all_again(shop: Shop) -> None:
    """The control: it is the quarantine that keeps it from that."""
    (shop.root / WITNESS).unlink()
    async with Toolgate.open(shop.settings()) as gate:
        gate.add(*shop.tools())
        await until(lambda: len(shop.effects()) == 4)
        assert sorted(shop.effects()[2:]) == ["put:a", "send:b"]


async def test_a_server_and_the_doctor_tell_of_a_quarantine(shop: Shop) -> None:
    told = command(shop.root, "doctor")
    assert "in quarantine" in told.stdout
    told = command(shop.root, "store", "show", "--json")
    assert told.returncode == 1
    assert '"quarantined": true' in told.stdout
    with Serving(shop.root) as server:
        ready = server.get("/readyz")
        assert (ready.status, ready.body["status"]) == (200, "degraded")
        assert ready.body["parts"]["store"] == "quarantined"
        assert "the store is in quarantine" in server.log


async def test_a_store_that_was_accepted_twice_knows_the_copies_in_between(shop: Shop) -> None:
    assert command(shop.root, "store", "accept", "--why", "once").returncode == 0
    async with Toolgate.open(shop.settings("never")) as gate:
        assert gate.held() == ""
    # Yesterday's once more: it has never heard of that.
    shop.restore()
    async with Toolgate.open(shop.settings("never")) as gate:
        assert "from before it was accepted" in gate.held()
    assert command(shop.root, "store", "accept", "--why", " ").returncode == 2
    assert command(shop.root, "store", "accept", "--why", "twice").returncode == 0
    async with Toolgate.open(shop.settings("never")) as gate:
        assert gate.held() == ""


async def test_a_killed_process_and_several_at_once_are_no_reason(tmp_path: Path) -> None:
    put_blank(tmp_path / STORE)
    for at in ("CP4", "CP5:2", "CP9:3"):
        await killed(tmp_path, "", at)
    settings = child.settings(tmp_path, "")
    async with Toolgate.open(settings) as one, Toolgate.open(settings) as other:
        for gate in (one, other):
            gate.add(*child.tools(tmp_path))
            assert (await gate.call("pay", {"amount": 7}, caller=ME)).ok
        assert command(tmp_path, "store", "show").returncode == 0
        with Serving(tmp_path) as server:
            assert server.get("/readyz").body["parts"]["store"] == "ok"
        assert (await other.call("pay", {"amount": 8}, caller=ME)).ok
    async with Toolgate.open(settings) as gate:
        assert gate.held() == ""
        found = await gate.journal.entries(ME.tenant)
        assert State.SUCCEEDED in {one.state for one in found}


async def test_a_new_store_in_the_place_of_another_is_none(shop: Shop) -> None:
    (shop.root / STORE).unlink()
    async with Toolgate.open(shop.settings("never")) as gate:
        assert gate.held() == ""


async def test_a_server_that_is_brought_back_under_a_running_process_is_noticed(
    database: Database, tmp_path: Path
) -> None:
    hold = Hold()
    here = Lineage(database, None, hold)
    await here.look()
    for _ in range(3):
        await here.accept("someone", "to have records")
        assert hold.why == ""

    def forget(connection: sa.Connection) -> None:
        last = connection.execute(sa.select(sa.func.max(audit_log.c.id))).scalar_one()
        connection.execute(audit_log.delete().where(audit_log.c.id == last))

    await database.write(forget, tenant=HOUSE)
    await here.look()
    assert "an older copy" in hold.why
    # Another node, which has seen nothing, goes by what stands in the store; and can end it.
    other = Hold()
    there = Lineage(database, tmp_path / "seen", other)
    await there.look()
    assert other.why == hold.why
    await there.accept("someone", "it is as it should be")
    await here.look()
    assert (hold.why, other.why) == ("", "")


async def test_a_busy_copy_whose_audit_has_passed_what_was_seen_is_known_all_the_same(
    database: Database,
) -> None:
    hold = Hold()
    here = Lineage(database, None, hold)
    await here.look()
    await here.accept("someone", "to have a record")
    assert hold.why == ""

    def overtake(connection: sa.Connection) -> None:
        last = connection.execute(sa.select(sa.func.max(audit_log.c.id))).scalar_one()
        connection.execute(audit_log.delete().where(audit_log.c.id == last))
        other = audit.house_row("call.ended", {}, who="someone", why="")
        audit.put(connection, [other | {"id": last}])
        audit.put(connection, [other | {"id": last + 1}, other | {"id": last + 2}])

    await database.write(overtake, tenant=HOUSE)
    await here.look()
    assert "is not the one that was seen" in hold.why


@pytest.mark.parametrize("watched", [True, False])
async def test_a_key_used_since_the_copy_is_refused_before_anybody_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, watched: bool
) -> None:
    """Without the look in the writer's turn, which is the control, it is done twice."""
    monkeypatch.setattr(lineage, "_EVERY", 3_600.0)
    if not watched:
        monkeypatch.setattr(Sqlite, "watch", unwatched)
    made = Shop(tmp_path)
    made.go.set()
    async with Toolgate.open(made.settings()) as gate:
        gate.add(*made.tools())
        made.copy()
        assert (await gate.call("put", {"text": "a"}, caller=ME, idempotency_key="k")).ok
    async with Toolgate.open(made.settings()) as gate:
        gate.add(*made.tools())
        assert (await gate.call("put", {"text": "b"}, caller=ME)).ok
        made.restore_into()
        asked = gate.call("put", {"text": "a"}, caller=ME, idempotency_key="k")
        if watched:
            with pytest.raises(StoreQuarantined, match="an older copy"):
                await asked
        else:
            assert (await asked).ok
    assert made.effects().count("put:a") == (1 if watched else 2)


async def test_what_another_process_writes_is_no_reason(tmp_path: Path) -> None:
    put_blank(tmp_path / STORE)
    settings = child.settings(tmp_path, "")
    async with Toolgate.open(settings) as one, Toolgate.open(settings) as other:
        for gate in (one, other):
            gate.add(*child.tools(tmp_path))
        for amount in range(5):
            for gate in (one, other):
                assert (await gate.call("pay", {"amount": amount}, caller=ME)).ok
        assert (one.held(), other.held()) == ("", "")


def unwatched(*_: object) -> None:
    """Nobody looks in the writer's turn."""


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
