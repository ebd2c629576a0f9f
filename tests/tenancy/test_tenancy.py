"""The world in memory follows the one on record: its own changes at once, others' when it looks."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.store.child import child
from toolgate.errors import InvalidRequest
from toolgate.store.directory import TableDirectory
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tenancy.world import World
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("G1")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Sqlite]:
    database = Sqlite(tmp_path / "toolgate.db")
    await migrate(database)
    yield database
    await database.close()


async def test_a_change_is_seen_at_once_by_whoever_made_it() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_tool("echo", enabled=False)
    assert tenancy.world.everyone.flags == {"echo": False}
    await tenancy.set_tool("echo", None)
    assert tenancy.world.everyone.flags == {}
    await tenancy.set_tenant_tool("acme", "echo", enabled=False)
    assert tenancy.world.flags("acme") == {"echo": False}


async def test_looking_again_when_nothing_changed_changes_nothing() -> None:
    tenancy = Tenancy(MemoryDirectory())
    assert await tenancy.refresh()
    world = tenancy.world
    assert not await tenancy.refresh()
    assert tenancy.world is world


async def test_another_nodes_change_is_seen_when_looked_for() -> None:
    directory = MemoryDirectory()
    here, there = Tenancy(directory), Tenancy(directory)
    await here.refresh()
    await there.set_tool("echo", enabled=False)
    assert here.world.everyone.flags == {}
    assert await here.refresh()
    assert here.world == there.world


ELSEWHERE = """
import asyncio, sys
from pathlib import Path
from typing import Any
from toolgate.errors import InvalidRequest
from toolgate.store.directory import TableDirectory
from toolgate.store.sqlite import Sqlite
from toolgate.tenancy.tenancy import Tenancy

async def main():
    database = Sqlite(Path(sys.argv[1]))
    await Tenancy(TableDirectory(database)).set_tool("echo", False)
    await database.close()

asyncio.run(main())
print("changed", flush=True)
"""


async def test_another_processs_change_is_seen(database: Sqlite, tmp_path: Path) -> None:
    tenancy = Tenancy(TableDirectory(database))
    await tenancy.refresh()
    assert tenancy.world.everyone.flags == {}
    with child(ELSEWHERE, str(tmp_path / "toolgate.db")) as other:
        assert other.hear() == "changed"
    assert await tenancy.refresh()
    assert tenancy.world.everyone.flags == {"echo": False}


async def test_activating_a_tool_does_not_open_a_capsule_that_another_node_closed() -> None:
    """This node has not looked since; writing the mode it knows would give the agent everything."""
    directory = MemoryDirectory()
    here, there = Tenancy(directory), Tenancy(directory)
    await here.refresh()
    await there.set_agent("acme", "clerk", Mode.LISTED)
    await here.activate("acme", "clerk", "echo")
    capsule = here.world.capsule("acme", "clerk")
    assert capsule.mode is Mode.LISTED
    assert capsule.has("echo")
    assert not capsule.has("mail.send")


async def test_activating_a_tool_puts_a_new_agent_on_record_in_one_change() -> None:
    directory = MemoryDirectory()
    tenancy = Tenancy(directory)
    care = {"requires_approval": True}
    await tenancy.activate("acme", "clerk", "echo", enabled=False, overrides=care)
    assert await directory.revision() == 1
    assert not tenancy.world.capsule("acme", "clerk").has("echo")
    assert tenancy.world.capsule("acme", "clerk").overrides("echo") == care
    assert "acme" in tenancy.world.tenants


class Slow(MemoryDirectory):
    """A directory that hands its first world over late."""

    def __init__(self) -> None:
        super().__init__()
        self._first = True
        self.asked, self.release = asyncio.Event(), asyncio.Event()

    async def load(self, since: World | None = None) -> World:
        world = await super().load(since)
        if self._first:
            self._first = False
            self.asked.set()
            await self.release.wait()
        return world


async def test_a_world_that_was_read_earlier_does_not_replace_a_later_one() -> None:
    """Else a tool that was just switched off would be back until the next look."""
    slow = Slow()
    tenancy = Tenancy(slow)
    looking = asyncio.ensure_future(tenancy.refresh())
    await slow.asked.wait()
    switching = asyncio.ensure_future(tenancy.set_tool("mail.send", enabled=False))
    # As far as it can come by itself.
    for _ in range(10):
        await asyncio.sleep(0)
    slow.release.set()
    await asyncio.gather(looking, switching)
    assert tenancy.world.everyone.flags == {"mail.send": False}


async def test_changes_that_come_together_are_all_there(database: Sqlite) -> None:
    tenancy = Tenancy(TableDirectory(database))
    await asyncio.gather(*(tenancy.set_tool(f"t{n}", enabled=False) for n in range(20)))
    assert len(tenancy.world.everyone.flags) == 20
    assert tenancy.world.revision == 20


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"requires_confirmaton": True}, "Did you mean 'requires_confirmation'"),
        ({"timeout": 99}, "is no override"),
        ({"requires_confirmation": False}, "can only be True"),
        ({"requires_approval": 1}, "can only be True"),
    ],
)
async def test_an_override_that_would_not_hold_is_refused(
    overrides: dict[str, object], said: str
) -> None:
    tenancy = Tenancy(MemoryDirectory())
    with pytest.raises(InvalidRequest, match=said):
        await tenancy.activate("acme", "clerk", "echo", overrides=overrides)
    assert not tenancy.world.tenants
    await tenancy.activate("acme", "clerk", "echo", overrides={"requires_approval": True})
    assert tenancy.world.tenant("acme").capsules


async def test_a_flag_cannot_miss_its_tool_by_a_typo() -> None:
    tenancy = Tenancy(MemoryDirectory(), known=lambda: ["echo", "timestamp"])
    for change in (
        tenancy.set_tool("ehco", enabled=False),
        tenancy.set_tenant_tool("acme", "ehco", enabled=False),
        tenancy.activate("acme", "clerk", "ehco", enabled=False),
    ):
        with pytest.raises(InvalidRequest, match="Did you mean 'echo'"):
            await change
    assert tenancy.world.revision == -1
    await tenancy.set_tool("echo", enabled=False)
    assert tenancy.world.everyone.flags == {"echo": False}


async def test_a_mode_or_role_that_there_is_not_is_told_with_those_there_are() -> None:
    tenancy = Tenancy(MemoryDirectory())
    odd: Any = "everything"
    with pytest.raises(InvalidRequest, match="all, listed"):
        await tenancy.set_agent("acme", "clerk", odd)
    with pytest.raises(InvalidRequest, match="admin, tenant_admin, operator, approver, agent"):
        await tenancy.add_key(odd, tenant="acme")
    word: Any = "listed"
    await tenancy.set_agent("acme", "clerk", word)
    assert tenancy.world.capsule("acme", "clerk").mode is Mode.LISTED
