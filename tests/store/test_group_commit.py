# pyright: reportPrivateUsage=false
"""One commit for many: what was acknowledged is on disk, for everyone, also after a kill."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from tests.store.child import child
from tests.store.entries import entry
from tests.store.places import busy
from toolgate.errors import StoreUnavailable
from toolgate.store import sqlite
from toolgate.store.jobs import Answer, Job
from toolgate.store.journal import TableJournal
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite

pytestmark = pytest.mark.req("D1", "S3")


def seen_by_another(path: Path) -> set[str]:
    """Read through a connection of its own, with nothing of ours in between."""
    with closing(sqlite3.connect(path)) as other:
        return {row[0] for row in other.execute("SELECT call_id FROM tool_execution_log")}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many works each commit from now on holds."""
    commits: list[int] = []
    real = sqlite._committed

    def count(
        connection: Connection, batch: list[Job], look: Callable[[Connection], None]
    ) -> list[Answer]:
        commits.append(len(batch))
        return real(connection, batch, look)

    monkeypatch.setattr(sqlite, "_committed", count)
    return commits


@given(writers=st.lists(st.integers(1, 6), min_size=1, max_size=80))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_every_write_is_visible_to_others_as_soon_as_it_is_acknowledged(
    tmp_path: Path, writers: list[int]
) -> None:
    path = tmp_path / "toolgate.db"
    database = Sqlite(path)
    await migrate(database)
    journal = TableJournal(database)
    acknowledged: set[str] = set()

    async def write(times: int) -> None:
        for _ in range(times):
            intent = entry()
            await journal.begin(intent)
            acknowledged.add(intent.call_id)

    async def watch() -> None:
        while len(acknowledged) < sum(writers):
            known = set(acknowledged)
            assert known <= await asyncio.to_thread(seen_by_another, path)

    await asyncio.gather(*map(write, writers), watch())
    assert acknowledged <= seen_by_another(path)
    await database.close()


async def test_those_who_wait_together_are_committed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "toolgate.db"
    database = Sqlite(path)
    await migrate(database)
    journal = TableJournal(database)
    commits = counted(monkeypatch)
    async with busy(database):
        waiting = [asyncio.ensure_future(journal.begin(entry())) for _ in range(200)]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert len(seen_by_another(path)) == 200
    # That of the work they waited for, and theirs.
    assert commits == [1, 200]
    await database.close()


async def test_those_who_ask_in_the_same_turn_are_committed_together_also_by_an_idle_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "toolgate.db"
    database = Sqlite(path)
    await migrate(database)
    journal = TableJournal(database)
    commits = counted(monkeypatch)
    await asyncio.gather(*(journal.begin(entry()) for _ in range(300)))
    assert len(seen_by_another(path)) == 300
    # As many as one commit takes, and the rest.
    assert commits == [256, 44]
    await database.close()


def test_what_a_loop_asked_for_in_its_last_turn_is_written(tmp_path: Path) -> None:
    path = tmp_path / "toolgate.db"
    database = Sqlite(path)
    asyncio.run(migrate(database))
    loop = asyncio.new_event_loop()
    asked = loop.create_task(TableJournal(database).begin(entry()))
    loop.call_soon(loop.stop)
    loop.run_forever()
    asyncio.run(database.close())
    assert len(seen_by_another(path)) == 1
    # Its answer came back to it.
    assert loop.run_until_complete(asked).entry.call_id in seen_by_another(path)
    loop.close()


def test_whoever_asks_while_another_loop_closes_is_written_or_refused(tmp_path: Path) -> None:
    """The one who asks is held in the middle of it, until the other has closed, or waits for it."""
    path = tmp_path / "toolgate.db"
    database = Sqlite(path)
    asyncio.run(migrate(database))
    closing_ = threading.Thread(target=lambda: asyncio.run(database.close()), daemon=True)

    class Asked(dict[asyncio.AbstractEventLoop, list[Job]]):
        def get(self, *key: Any) -> Any:
            closing_.start()
            closing_.join(0.2)
            return super().get(*key)

    database._asked = Asked()

    async def ask() -> str:
        async with asyncio.timeout(10):
            return (await TableJournal(database).begin(entry())).entry.call_id

    assert {asyncio.run(ask())} == seen_by_another(path)
    closing_.join(10)
    assert not closing_.is_alive()
    with pytest.raises(StoreUnavailable):
        asyncio.run(ask())


WRITING = """
import asyncio, sys
from pathlib import Path
from tests.store.entries import entry
from toolgate.store import sqlite
from toolgate.store.jobs import Answer, Job
from toolgate.store.journal import TableJournal
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite

async def main():
    database = Sqlite(Path(sys.argv[1]))
    await migrate(database)
    journal = TableJournal(database)

    async def write():
        while True:
            intent = entry()
            await journal.begin(intent)
            print(intent.call_id, flush=True)

    await asyncio.gather(*(write() for _ in range(int(sys.argv[2]))))

asyncio.run(main())
"""


HELD_UP = """
            asyncio.ensure_future(database.write(lambda _: sys.stdin.readline()))
            asyncio.ensure_future(journal.begin(intent))
            await asyncio.sleep(0)
""".strip()


@pytest.mark.parametrize("writers", [1, 16])
def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path, writers: int) -> None:
    path = tmp_path / "toolgate.db"
    acknowledged: list[str] = []
    for _ in range(3):
        with child(WRITING, str(path), str(writers)) as writing:
            acknowledged += [writing.hear() for _ in range(200)]
            writing.kill()
            # The last line may have been cut off in the middle.
            acknowledged += [line for line in writing.rest() if len(line) == len(acknowledged[0])]
        assert set(acknowledged) <= seen_by_another(path)
    assert len(set(acknowledged)) == len(acknowledged) >= 600
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_check_would_notice_a_loss(tmp_path: Path) -> None:
    """The control: acknowledged while the commit is held up, it is lost."""
    too_early = WRITING.replace("await journal.begin(intent)", HELD_UP)
    assert too_early != WRITING
    path = tmp_path / "toolgate.db"
    with child(too_early, str(path), "1") as writing:
        acknowledged = writing.hear()
        writing.kill()
    assert acknowledged not in seen_by_another(path)


async def test_a_log_that_was_cut_off_anywhere_gives_back_a_beginning_of_it(tmp_path: Path) -> None:
    """A power cut: what the disk had of the log is a part of it; what it had is whole."""
    path = tmp_path / "toolgate.db"
    database = Sqlite(path)
    await migrate(database)
    journal = TableJournal(database)
    order: list[str] = []
    for _ in range(20):
        intent = entry()
        await journal.begin(intent)
        order.append(intent.call_id)
    whole, log = path.read_bytes(), path.with_name("toolgate.db-wal").read_bytes()
    await database.close()

    lengths: set[int] = set()
    for cut in range(0, len(log), 1_777):
        copy = tmp_path / f"cut{cut}.db"
        copy.write_bytes(whole)
        copy.with_name(f"{copy.name}-wal").write_bytes(log[:cut])
        with closing(sqlite3.connect(copy)) as other:
            assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            tables = other.execute("SELECT name FROM sqlite_schema WHERE name = 'revisions'")
            found = seen_by_another(copy) if tables.fetchone() else set[str]()
        assert found == set(order[: len(found)])
        lengths.add(len(found))
    assert {0, 5, 10, 15} <= lengths
