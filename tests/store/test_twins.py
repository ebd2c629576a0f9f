"""A whole house on the twins: what a user's own tests stand on."""

import pytest

from toolgate import Caller, tool
from toolgate.errors import ToolNotFound
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

CALLER = Caller(tenant="acme", agent="clerk")


@tool(effect="pure")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


async def test_a_users_tools_are_governed_and_on_record_in_memory() -> None:
    journal = MemoryJournal()
    async with in_memory(add, send, journal=journal) as house:
        assert [spec.name for spec in await house.discover(CALLER)] == ["add", "send"]
        assert (await house.call("add", {"a": 1, "b": 2}, caller=CALLER)).data == 3
        assert (await house.call("send", {"to": "bob"}, caller=CALLER)).data == "sent to bob"
    assert [(one.tool, one.effect, one.state) for one in journal.calls] == [
        ("add", Effect.PURE, State.SUCCEEDED),
        ("send", Effect.IRREVERSIBLE, State.SUCCEEDED),
    ]


@pytest.mark.req("G1")
async def test_what_the_directory_says_holds() -> None:
    directory = MemoryDirectory()
    await Tenancy(directory).set_tenant_tool("acme", "send", enabled=False)
    async with in_memory(add, send, directory=directory) as house:
        assert [spec.name for spec in await house.discover(CALLER)] == ["add"]
        with pytest.raises(ToolNotFound):
            await house.call("send", {"to": "bob"}, caller=CALLER)
        await house.tenancy.set_tenant_tool("acme", "send", None)
        assert (await house.call("send", {"to": "bob"}, caller=CALLER)).ok


async def test_two_houses_share_nothing() -> None:
    async with in_memory(add) as one, in_memory(add) as other:
        await one.tenancy.set_tool("add", enabled=False)
        await other.call("add", {"a": 1, "b": 1}, caller=CALLER)
        assert list(await one.discover(CALLER)) == []
        assert list(await one.journal.entries("acme")) == []
        assert len(await other.journal.entries("acme")) == 1
