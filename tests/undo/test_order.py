"""In which order a turn is taken back: by when the store saw its calls begin, on whichever node."""

from pathlib import Path

import pytest

from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.undo.shop import GROUP, ME, Shop, paid
from toolgate import Toolgate, clock, tool
from toolgate.runtime import Runtime
from toolgate.settings.settings import Settings, Store

pytestmark = pytest.mark.req("S4")
THREE_SECONDS = 3_000_000_000


async def test_a_clock_that_is_set_back_changes_no_order(
    house: Runtime, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = clock.unix_ns
    await paid(house, 1)
    monkeypatch.setattr(clock, "unix_ns", lambda: real() - THREE_SECONDS)
    await paid(house, 2)
    assert (await house.undo(caller=ME, turn_group=GROUP.group)).ok
    assert shop.effects[2:] == [("refund", "p2"), ("refund", "p1")]


async def test_a_node_whose_clock_is_behind_changes_no_order(
    postgres: Server, tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = clock.unix_ns
    async with lent_url(postgres) as url:
        settings = Settings(root=tmp_path, store=Store(url=url))
        async with Toolgate.open(settings) as ahead, Toolgate.open(settings) as behind:
            for node in (ahead, behind):
                node.add(*shop.tools())
            await paid(ahead, 1)
            monkeypatch.setattr(clock, "unix_ns", lambda: real() - THREE_SECONDS)
            await paid(behind, 2)
            monkeypatch.undo()
            await paid(ahead, 3)
            assert (await ahead.undo(caller=ME, turn_group=GROUP.group)).ok
    assert shop.effects[3:] == [("refund", "p3"), ("refund", "p2"), ("refund", "p1")]


async def test_what_waited_for_a_person_is_taken_back_as_of_when_it_ran(
    house: Runtime, shop: Shop
) -> None:
    @tool(
        effect="compensatable",
        requires_approval=True,
        compensation={"tool": "refund", "args": {"payment": "$args.id"}},
    )
    def lease(id: str) -> str:  # noqa: A002
        shop.did("lease", id)
        return id

    house.add(lease)
    asked = await house.call("lease", {"id": "car"}, caller=ME, turn=GROUP)
    assert asked.error is not None
    await paid(house, 1)
    await house.approvals.approve(asked.error.details["approval_id"], by="boss", reason="fine")
    assert (await house.call("lease", {"id": "car"}, caller=ME, turn=GROUP)).ok
    assert (await house.undo(caller=ME, turn_group=GROUP.group)).ok
    assert shop.effects == [("pay", 1), ("lease", "car"), ("refund", "car"), ("refund", "p1")]
