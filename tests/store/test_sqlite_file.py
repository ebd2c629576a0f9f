"""The store as a file: whose eyes it is for, where it may be, and what can happen to it."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from tests.store.entries import entry
from toolgate.errors import StoreMismatch, StoreUnavailable
from toolgate.settings.settings import Settings, Store
from toolgate.storage import connect
from toolgate.store import sqlite
from toolgate.store.database import Database
from toolgate.store.journal import TableJournal
from toolgate.store.migrate import migrate
from toolgate.store.records import tool_execution_log
from toolgate.store.sqlite import Sqlite

pytestmark = pytest.mark.req("D1")


def calls(connection: Connection) -> int:
    return connection.execute(
        sa.select(sa.func.count()).select_from(tool_execution_log)
    ).scalar_one()


async def used(database: Database) -> None:
    """Migrated, with one call on record."""
    await migrate(database)
    await TableJournal(database).begin(entry())


def within(folder: Path) -> dict[str, int]:
    """What is in a folder, and who may do what with it."""
    return {path.name: mode(path) for path in sorted(folder.iterdir())}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def mounted(folder: Path, options: str) -> Generator[None]:
    """A file system of its own, where the machine lets us make one."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("skipped: mounting a small tmpfs needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def no_longer_writable(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


async def test_everything_it_writes_is_for_its_owner_only(tmp_path: Path) -> None:
    with umask(0):
        database = Sqlite(tmp_path / "made" / "toolgate.db")
        await used(database)
    assert within(tmp_path / "made") == {
        "toolgate.db": 0o600,
        "toolgate.db-shm": 0o600,
        "toolgate.db-wal": 0o600,
    }
    assert mode(tmp_path / "made") == 0o700
    await database.close()


async def test_without_that_care_others_could_read_it(tmp_path: Path) -> None:
    """The control: a file that SQLite makes itself is everyone's, where the umask allows it."""
    with umask(0), closing(sqlite3.connect(tmp_path / "plain.db")) as plain:
        plain.execute("CREATE TABLE proof (word)")
    assert mode(tmp_path / "plain.db") == 0o644


async def test_what_an_operator_allowed_others_stays_allowed(tmp_path: Path) -> None:
    path = tmp_path / "toolgate.db"
    path.touch()
    path.chmod(0o640)
    database = Sqlite(path)
    await used(database)
    assert set(within(tmp_path).values()) == {0o640}
    await database.close()


async def test_it_is_durable_before_it_is_acknowledged(tmp_path: Path) -> None:
    database = Sqlite(tmp_path / "toolgate.db")

    def pragmas(connection: Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

    assert await database.write(pragmas) == await database.read(pragmas) == ["wal", 2, 1]
    await database.close()


async def test_a_link_and_the_file_it_leads_to_are_one_store(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "toolgate.db").symlink_to(tmp_path / "disk" / "real.db")
    with umask(0):
        linked = Sqlite(tmp_path / "toolgate.db")
        await used(linked)
    direct = Sqlite(tmp_path / "disk" / "real.db")
    await TableJournal(direct).begin(entry())
    assert await linked.read(calls) == await direct.read(calls) == 2
    assert within(tmp_path).keys() == {"disk", "toolgate.db"}
    assert mode(tmp_path / "disk" / "real.db") == 0o600
    await asyncio.gather(linked.close(), direct.close())


@pytest.mark.parametrize(
    "name", ["a b.db", "ü.db", "a?mode=ro.db", "a#b.db", "a%41.db", "file:a.db", ":memory:", "a'b"]
)
async def test_a_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    database = Sqlite(tmp_path / name)
    await used(database)
    assert within(tmp_path).keys() == {name, f"{name}-shm", f"{name}-wal"}
    await database.close()


async def test_a_relative_place_starts_at_the_settings_and_not_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    database = connect(Settings(store=Store(url="sqlite:///data/toolgate.db"), root=home))
    monkeypatch.chdir(tmp_path)
    await used(database)
    assert (home / "data" / "toolgate.db").exists()
    assert within(elsewhere) == {}
    await database.close()


async def test_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = connect(Settings(store=Store(url="sqlite:///:memory:"), root=tmp_path))
    await used(database)
    assert await database.read(calls) == 1
    assert within(tmp_path) == {}
    await database.close()


async def test_a_place_that_cannot_be_is_refused_without_naming_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for impossible in (tmp_path / "file" / "toolgate.db", tmp_path / ("x" * 300)):
        with pytest.raises(StoreUnavailable) as refused:
            Sqlite(impossible)
        assert str(tmp_path) not in str(refused.value)
        assert "[store] url" in refused.value.message


async def test_a_folder_is_no_store(tmp_path: Path) -> None:
    database = Sqlite(tmp_path)
    with pytest.raises(StoreUnavailable, match="SQLITE_CANTOPEN") as refused:
        await migrate(database)
    assert str(tmp_path) not in str(refused.value)
    await database.close()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear reader, " * 1_000)
    database = Sqlite(letter)
    with pytest.raises(StoreMismatch, match="no database of ours"):
        await migrate(database)
    await database.close()
    assert letter.read_text() == "Dear reader, " * 1_000


async def test_a_damaged_file_is_refused_and_not_retried(tmp_path: Path) -> None:
    path = tmp_path / "toolgate.db"
    database = Sqlite(path)
    await used(database)
    await database.close()
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * (path.stat().st_size - 4_096))
    database = Sqlite(path)
    with pytest.raises(StoreMismatch, match="damaged"):
        await migrate(database)
    await database.close()


async def test_a_full_disk_refuses_and_loses_nothing_it_has(tmp_path: Path) -> None:
    with mounted(tmp_path, "size=600k"):
        database = Sqlite(tmp_path / "toolgate.db")
        journal = TableJournal(database)
        await migrate(database)
        done = 0
        with pytest.raises(StoreUnavailable, match=r"SQLITE_FULL|SQLITE_IOERR") as refused:  # noqa: PT012
            while True:
                await asyncio.gather(*(journal.begin(entry(user="x" * 999)) for _ in range(8)))
                done += 8
        assert "INSERT" not in str(refused.value)
        assert done >= 8
        # Of those who asked together, all were told the same.
        assert await database.read(calls) == done
        await database.close()


async def test_a_read_only_disk_is_refused_at_the_start(tmp_path: Path) -> None:
    with mounted(tmp_path, "size=2m"):
        database = Sqlite(tmp_path / "toolgate.db")
        await used(database)
        await database.close()
        no_longer_writable(tmp_path)
        with pytest.raises(StoreUnavailable, match="Read-only file system") as refused:
            Sqlite(tmp_path / "toolgate.db")
        assert str(tmp_path) not in str(refused.value)


async def test_a_store_that_another_holds_is_refused_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_MS", 1)
    database = Sqlite(tmp_path / "toolgate.db")
    await used(database)
    with closing(sqlite3.connect(tmp_path / "toolgate.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answers = await asyncio.gather(
            *(TableJournal(database).begin(entry()) for _ in range(8)), return_exceptions=True
        )
        assert all(isinstance(answer, StoreUnavailable) for answer in answers)
        assert "SQLITE_BUSY" in str(answers[0])
        assert await database.read(calls) == 1
        other.execute("ROLLBACK")
    await TableJournal(database).begin(entry())
    assert await database.read(calls) == 2
    await database.close()


def test_the_writer_outlives_a_loop_that_is_gone(tmp_path: Path) -> None:
    free, begun = threading.Event(), threading.Event()

    def long(connection: Connection) -> None:
        begun.set()
        free.wait()

    async def leave(database: Sqlite) -> None:
        await migrate(database)
        asked = asyncio.ensure_future(database.write(long))
        await asyncio.to_thread(begun.wait)
        asked.cancel()

    async def come_back(database: Sqlite) -> int:
        await TableJournal(database).begin(entry())
        found = await database.read(calls)
        await database.close()
        return found

    database = Sqlite(tmp_path / "toolgate.db")
    asyncio.run(leave(database))
    free.set()
    assert asyncio.run(come_back(database)) == 1


@pytest.mark.req("O2")
async def test_a_disk_that_hangs_holds_up_nobody_but_those_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer hangs first; from then on the loop's own thread does not look at the file."""
    monkeypatch.setattr(sqlite, "_STUCK_NS", 0)
    database = Sqlite(tmp_path / "toolgate.db")
    await used(database)
    assert await database.ask("SELECT 1")
    begun, free = threading.Barrier(4), threading.Event()

    def hang(_: Connection) -> None:
        begun.wait()
        free.wait()

    hung = [asyncio.ensure_future(database.write(hang))]
    hung += [asyncio.ensure_future(database.read(hang)) for _ in range(2)]
    await asyncio.to_thread(begun.wait)
    asked = [asyncio.ensure_future(database.ask("SELECT 1")) for _ in range(64)]
    for _ in range(100):
        await asyncio.sleep(0)
    assert not any(one.done() for one in asked)
    asked[0].cancel()
    # The control: who takes the writer for a healthy one looks, and is answered at once.
    monkeypatch.setattr(sqlite, "_STUCK_NS", 10**18)
    assert [tuple(row) for row in await database.ask("SELECT 3")] == [(3,)]
    free.set()
    await asyncio.gather(*hung)
    answers = await asyncio.gather(*asked[1:])
    assert all([tuple(row) for row in rows] == [(1,)] for rows in answers)
    await database.close()


async def test_a_look_does_not_wait_for_another_process_nor_keep_it_waiting(
    tmp_path: Path,
) -> None:
    database = Sqlite(tmp_path / "toolgate.db")
    await used(database)
    question = "SELECT count(*) FROM tool_execution_log"
    with closing(sqlite3.connect(tmp_path / "toolgate.db", isolation_level=None)) as other:
        for _ in range(3):
            assert [tuple(row) for row in await database.ask(question)] == [(1,)]
            other.execute("BEGIN IMMEDIATE")
            assert [tuple(row) for row in await database.ask(question)] == [(1,)]
            other.execute("ROLLBACK")
            # Nothing of a look is left open, or this would find the file in use.
            busy, *_ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            assert busy == 0
    await database.close()
