"""A side effect never runs on a world that is older than its call."""

import asyncio
from pathlib import Path

import pytest

from tests.store.child import child
from toolgate.errors import StoreMismatch, StoreUnavailable
from toolgate.store.directory import TableDirectory
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite
from toolgate.tenancy import present
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("G1")


class Watched(MemoryDirectory):
    """Counts the questions, and answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.free = asyncio.Event()
        self.free.set()
        self.error: Exception | None = None

    async def revision(self) -> int:
        self.asked += 1
        # Read before the wait: what is answered late is what was true when it was asked.
        found = await super().revision()
        await self.free.wait()
        if self.error is not None:
            raise self.error
        return found


async def as_far_as_it_comes() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


async def test_another_nodes_revoke_is_seen_by_the_next_call() -> None:
    directory = MemoryDirectory()
    here, there = Tenancy(directory), Tenancy(directory)
    await here.freshen()
    for number in range(100):
        enabled = bool(number % 2)
        await there.set_tool("pay", enabled)
        await here.freshen()
        assert here.world.everyone.flags == {"pay": enabled}


async def test_without_it_the_revoke_would_be_missed() -> None:
    """The guard-off control."""
    directory = MemoryDirectory()
    here, there = Tenancy(directory), Tenancy(directory)
    await here.freshen()
    await there.set_tool("pay", enabled=False)
    assert here.world.everyone.flags == {}


async def test_a_look_that_began_before_the_call_does_not_serve_it() -> None:
    watched = Watched()
    here, there = Tenancy(watched), Tenancy(watched)
    await here.refresh()
    watched.free.clear()
    early = asyncio.ensure_future(here.freshen())
    await as_far_as_it_comes()
    await there.set_tool("pay", enabled=False)
    late = asyncio.ensure_future(here.freshen())
    await as_far_as_it_comes()
    assert not late.done()
    watched.free.set()
    await early
    await late
    assert here.world.everyone.flags == {"pay": False}


async def test_many_who_ask_at_once_cost_two_looks() -> None:
    watched = Watched()
    tenancy = Tenancy(watched)
    await tenancy.freshen()
    watched.asked = 0
    watched.free.clear()
    first = asyncio.ensure_future(tenancy.freshen())
    await as_far_as_it_comes()
    others = [asyncio.ensure_future(tenancy.freshen()) for _ in range(63)]
    await as_far_as_it_comes()
    watched.free.set()
    await asyncio.gather(first, *others)
    assert watched.asked == 2


async def test_one_who_gives_up_does_not_take_the_look_from_the_others() -> None:
    watched = Watched()
    here, there = Tenancy(watched), Tenancy(watched)
    await here.freshen()
    watched.free.clear()
    asking = [asyncio.ensure_future(here.freshen()) for _ in range(8)]
    await as_far_as_it_comes()
    await there.set_tool("pay", enabled=False)
    for given_up in asking[:4]:
        given_up.cancel()
    watched.free.set()
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(one) for one in results[:4]] == [asyncio.CancelledError] * 4
    assert results[4:] == [None] * 4
    assert here.world.everyone.flags == {"pay": False}


@pytest.mark.parametrize(
    "error", [StoreUnavailable("the disk is full"), StoreMismatch("damaged")], ids=repr
)
async def test_a_store_that_fails_stops_everyone_with_one_look(error: Exception) -> None:
    watched = Watched()
    tenancy = Tenancy(watched)
    await tenancy.freshen()
    watched.asked, watched.error = 0, error
    watched.free.clear()
    asking = [asyncio.ensure_future(tenancy.freshen()) for _ in range(16)]
    await as_far_as_it_comes()
    watched.free.set()
    for one in asking:
        with pytest.raises(StoreUnavailable, match="still allowed"):
            await one
    assert watched.asked <= 2
    watched.error = None
    await tenancy.freshen()


async def test_a_store_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present, "FRESHEN_SECONDS", 0.01)
    watched = Watched()
    tenancy = Tenancy(watched)
    await tenancy.refresh()
    watched.free.clear()
    asking = [asyncio.ensure_future(tenancy.freshen()) for _ in range(4)]
    for one in asking:
        with pytest.raises(StoreUnavailable, match="Nothing ran"):
            await one
    watched.free.set()
    await tenancy.freshen()


async def test_ones_own_change_needs_no_second_look() -> None:
    watched = Watched()
    tenancy = Tenancy(watched)
    await tenancy.set_tool("pay", enabled=False)
    assert watched.asked == 0
    assert tenancy.world.everyone.flags == {"pay": False}


async def test_the_age_is_counted_from_the_last_answer() -> None:
    watched = Watched()
    tenancy = Tenancy(watched)
    await tenancy.freshen()
    young = tenancy.age_ns
    watched.error = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await tenancy.freshen()
    assert tenancy.age_ns > young >= 0


SWITCHING = """
import asyncio, sys
from pathlib import Path
from toolgate.store.directory import TableDirectory
from toolgate.store.sqlite import Sqlite
from toolgate.tenancy.tenancy import Tenancy

async def main():
    database = Sqlite(Path(sys.argv[1]))
    tenancy = Tenancy(TableDirectory(database))
    print("ready", flush=True)
    for line in sys.stdin:
        await tenancy.set_tool("pay", line.strip() == "on")
        print("done", flush=True)
    await database.close()

asyncio.run(main())
"""


async def test_another_processs_revoke_is_seen_by_the_next_call(tmp_path: Path) -> None:
    database = Sqlite(tmp_path / "toolgate.db")
    await migrate(database)
    tenancy = Tenancy(TableDirectory(database))
    with child(SWITCHING, str(tmp_path / "toolgate.db")) as other:
        assert other.hear() == "ready"
        for number in range(50):
            other.tell("on" if number % 2 else "off")
            assert other.hear() == "done"
            await tenancy.freshen()
            assert tenancy.world.everyone.flags == {"pay": bool(number % 2)}
    await database.close()


async def test_two_nodes_that_change_at_once_lose_nothing(tmp_path: Path) -> None:
    databases = [Sqlite(tmp_path / "toolgate.db") for _ in range(2)]
    await migrate(databases[0])
    nodes = [Tenancy(TableDirectory(database)) for database in databases]
    await asyncio.gather(
        *(
            node.set_tenant_tool(f"t{number % 5}", f"n{which}-{number}", enabled=True)
            for which, node in enumerate(nodes)
            for number in range(40)
        )
    )
    await asyncio.gather(*(node.freshen() for node in nodes))
    assert nodes[0].world == nodes[1].world
    assert sum(len(tenant.flags) for tenant in nodes[0].world.tenants.values()) == 80
    assert nodes[0].world.revision == 80
    await asyncio.gather(*(database.close() for database in databases))
