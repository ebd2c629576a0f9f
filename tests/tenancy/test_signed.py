"""Each change is on record under the name of who made it, with the reason."""

import asyncio

import pytest

from toolgate.errors import InvalidRequest
from toolgate.tenancy.keys import Role
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("G1")


async def test_a_change_carries_the_name_it_was_made_under() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.by("eva", "ticket 7").set_tool("pay", enabled=False)
    await tenancy.set_tool("pay", enabled=True)
    told = [(one.who, one.why, one.details["enabled"]) for one in await tenancy.audit()]
    assert told == [("library", "", True), ("eva", "ticket 7", False)]


async def test_a_signed_tenancy_is_the_same_tenancy() -> None:
    tenancy = Tenancy(MemoryDirectory())
    eva = tenancy.by("eva")
    await eva.set_tool("pay", enabled=False)
    assert tenancy.world is eva.world
    await tenancy.set_tool("pay", enabled=True)
    assert eva.world.everyone.flags == {"pay": True}
    hands = [tenancy.by(f"hand{number}") for number in range(20)]
    await asyncio.gather(
        *(hand.set_tool(f"t{number}", enabled=True) for number, hand in enumerate(hands))
    )
    assert len(tenancy.world.everyone.flags) == 21
    log = await tenancy.audit(limit=20)
    assert all(one.who.removeprefix("hand") == one.details["tool"][1:] for one in log)


@pytest.mark.parametrize(
    ("who", "why"),
    [
        ("", ""),
        ("  ", ""),
        ("x" * 201, ""),
        ("eva\n", ""),
        ("eva\u202e", ""),
        ("eva", "x" * 501),
        ("eva", "one\ntwo"),
        ("eva", "a\0b"),
        ("eva", "\x1b[2J"),
        ("eva", "\ud800"),
    ],
)
async def test_a_name_or_reason_that_no_line_can_show_is_refused(who: str, why: str) -> None:
    tenancy = Tenancy(MemoryDirectory())
    with pytest.raises(InvalidRequest):
        tenancy.by(who, why)
    assert tenancy.by("eva", "é" * 500)


async def test_no_secret_and_no_digest_is_in_the_log() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_agent("acme", "clerk")
    fresh = await tenancy.by("eva").add_key(Role.AGENT, tenant="acme", agent="clerk")
    await tenancy.by("eva", "left").revoke_key(fresh.key.id)
    log = await tenancy.audit(tenant="acme", limit=2)
    assert [(one.who, one.change) for one in log] == [("eva", "revoke_key"), ("eva", "add_key")]
    assert fresh.key.id in repr(log)
    assert fresh.secret not in repr(log)
    assert fresh.key.digest not in repr(log)


async def test_a_tenants_log_is_its_own() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_agent("acme", "clerk")
    await tenancy.set_agent("globex", "clerk")
    assert {one.tenant for one in await tenancy.audit(tenant="acme")} == {"acme"}
    assert {one.tenant for one in await tenancy.audit()} == {"acme", "globex"}
    with pytest.raises(InvalidRequest):
        await tenancy.audit(tenant="Acme")
    for limit in (0, -1, 1_001):
        with pytest.raises(InvalidRequest, match="limit"):
            await tenancy.audit(limit=limit)
