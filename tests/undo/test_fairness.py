"""Nobody's lost calls wait for those of others: not for many, nor for slow or damaged ones."""

# What is remembered between two looks is looked at here.
# pyright: reportPrivateUsage=false

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.house import until
from tests.store.entries import entry
from tests.undo.shop import FOREIGN, GROUP, ME, Shop, entry_of, lost, state_of
from toolgate import Caller, Turn, clock
from toolgate.executor.aftercare import recovery, unsure
from toolgate.executor.aftercare.unsure import Unsure
from toolgate.ledger.machine import Recovery
from toolgate.ledger.state import State
from toolgate.runtime import Runtime
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal
from toolgate.testing.ledger import MemoryLedger

pytestmark = pytest.mark.req("S3")
MANY = 20


async def made(
    house: Runtime, tool: str, args: dict[str, Any], caller: Caller = ME, turn: Turn = GROUP
) -> str:
    output = await house.call(tool, args, caller=caller, turn=turn)
    assert output.ok, output
    return output.call_id


async def marked(house: Runtime, ids: Sequence[str], caller: Caller = ME) -> None:
    """As if an undo had marked them and its process had gone after it had renewed them all."""
    for one in ids:
        found = await entry_of(house, one, caller)
        await lost(
            house,
            one,
            caller,
            state=State.COMPENSATING,
            plan=found.plan,
            result=found.result,
            fence=found.fence + 1,
        )


@pytest.mark.req("S4")
async def test_a_long_undo_that_was_interrupted_goes_on_and_holds_up_nobody(
    house: Runtime, shop: Shop
) -> None:
    ids = [await made(house, "pay", {"amount": at}) for at in range(MANY)]
    other = await made(house, "label", {"text": "x"}, FOREIGN)
    await marked(house, ids)
    await lost(house, other, FOREIGN, lease_ns=2)
    shop.effects.clear()
    await house.recovery.sweep()
    assert await state_of(house, other, FOREIGN) == "succeeded"
    assert {await state_of(house, one) for one in ids} == {"compensated"}
    refunds = [what for name, what in shop.effects if name == "refund"]
    assert refunds == [f"p{at}" for at in reversed(range(MANY))]


@pytest.mark.req("S4")
async def test_the_undo_of_somebody_elses_turn_of_the_same_name_is_not_waited_for(
    house: Runtime, shop: Shop
) -> None:
    ann, bob = (Caller(tenant="acme", agent="billing", user=user) for user in ("ann", "bob"))
    first = await made(house, "pay", {"amount": 1}, ann)
    second = await made(house, "pay", {"amount": 2}, bob)
    await marked(house, [first, second])
    # Somebody is at Bob's.
    found = await entry_of(house, second)
    await lost(
        house,
        second,
        state=State.COMPENSATING,
        plan=found.plan,
        result=found.result,
        lease_ns=clock.unix_ns() + 10**12,
    )
    await house.recovery.sweep()
    assert await state_of(house, first) == "compensated"
    assert await state_of(house, second) == "compensating"
    assert shop.effects[2:] == [("refund", "p1")]


async def test_slow_ones_hold_up_neither_the_look_nor_another_tenant(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()
    gate.set()

    async def export(n: int) -> int:
        await gate.wait()
        return n

    async with in_memory(*shop.tools()) as house:
        house.add(export, effect="idempotent")
        slow = [await made(house, "export", {"n": at}) for at in range(MANY)]
        gate.clear()
        for one in slow:
            await lost(house, one)
        await house.recovery.look()
        other = await made(house, "label", {"text": "x"}, FOREIGN)
        await lost(house, other, FOREIGN)
        await house.recovery.look()
        assert await state_of(house, other, FOREIGN) == "started", "all places are taken"
        monkeypatch.setattr(recovery, "_SLOW_NS", 0)
        await house.recovery.look()
        await until(lambda: len(shop.effects) == 2)
        # The slow ones have no more than their tenant's share.
        assert len([one for one in house.recovery._working.values() if one.tenant == "acme"]) == 16
        gate.set()
        await house.recovery.sweep()
        await house.recovery.sweep()
        assert {await state_of(house, one) for one in slow} == {"succeeded"}


class Damaged(MemoryLedger):
    """Some of its rows cannot be dealt with."""

    bad: frozenset[str] = frozenset()

    async def take(self, entry: Any) -> Any:
        if entry.call_id in self.bad:
            raise RuntimeError("this row")
        return await super().take(entry)


async def test_many_that_cannot_be_looked_after_stop_none_of_the_others(shop: Shop) -> None:
    journal = MemoryJournal()
    ledger = Damaged(journal)
    async with in_memory(*shop.tools(), journal=journal, ledger=ledger) as house:
        ids = [await made(house, "label", {"text": str(at)}) for at in range(2 * MANY)]
        for at, one in enumerate(ids):
            await lost(house, one, lease_ns=at)
        ledger.bad = frozenset(ids[:MANY])
        for _ in range(4):
            await house.recovery.sweep()
        assert {await state_of(house, one) for one in ids[MANY:]} == {"succeeded"}
        # They are not forgotten either.
        ledger.bad = frozenset()
        for _ in range(3):
            await house.recovery.sweep()
        assert {await state_of(house, one) for one in ids} == {"succeeded"}


async def test_unknown_ones_that_no_probe_can_tell_about_keep_none_from_being_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unsure, "_PAGE", 8)
    journal = MemoryJournal()
    rows = [
        entry(state=State.UNKNOWN, recovery=Recovery.PROBED, fence=1, tried=True, ended_ns=at)
        for at in range(1, 31)
    ]
    for row in rows:
        journal.put(row)
    looking = Unsure(MemoryLedger(journal), lease_ns=0)
    asked: list[str] = []
    for _ in range(30):
        for one in list(await looking.due())[:2]:
            looking.asked(one)
            asked.append(one.call_id)
    assert sorted(asked) == sorted(row.call_id for row in rows), "each one, and none at once again"
    # What is settled is not remembered.
    assert len(looking._asked) == len(rows)
    for row in rows[3:]:
        journal.put(msgspec.structs.replace(row, state=State.FAILED))
    for _ in range(2):
        await looking.due()
    assert set(looking._asked) == {row.call_id for row in rows[:3]}
