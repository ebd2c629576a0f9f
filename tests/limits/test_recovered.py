"""What a lost call costs does not depend on who finds out what became of it."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.store.kept import KINDS
from tests.store.once import GONE, Once, Tables, keyed, opened
from toolgate.executor.aftercare.probing import Probing, Told, failed
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Journal
from toolgate.ledger.machine import Action, Recovery
from toolgate.ledger.state import State
from toolgate.testing.journal import MemoryJournal

pytestmark = pytest.mark.req("X9", "S3")
LEASE = "gone-00000001"
COST = 7


class House:
    """Calls that cost, whose owner is gone; and what was charged for them."""

    def __init__(self, once: Once) -> None:
        self._once = once
        self._charged = 0
        self.journal = self._opened()
        self.ledger = once.ledger(self.journal)
        # What a probe says is handed in.
        self._probing = Probing(_nobody, lambda _: None)

    async def lost(self, recovery: Recovery) -> Entry:
        call = keyed(recovery=recovery, charges=((LEASE, COST),))
        return (await self._opened(**GONE).begin(call)).entry

    async def probed(self, entry: Entry, *, happened: bool | None) -> None:
        ended = self._probing.ended(entry, Told(happened, "nobody answers"))
        assert (await self.journal.end(ended)).accepted

    async def spent(self) -> int:
        return await self._once.spent(LEASE) if isinstance(self._once, Tables) else self._charged

    def _opened(self, **terms: Any) -> Journal:
        journal = self._once.journal(**terms)
        if isinstance(journal, MemoryJournal):
            journal.charge = self._charge
        return journal

    def _charge(self, charges: Sequence[tuple[str, int]]) -> None:
        self._charged += sum(amount for _, amount in charges)


async def _nobody(*_: object, **__: object) -> Any:
    raise AssertionError("no probe is asked here")


@pytest.fixture(params=KINDS)
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[House]:
    async with opened(request, tmp_path) as once:
        if isinstance(once, Tables):
            await once.lend(LEASE)
        yield House(once)


async def test_what_is_parked_costs_what_it_held(house: House) -> None:
    begun = await house.ledger.take(await house.lost(Recovery.PARK))
    assert (begun.action, await house.spent()) == (Action.PARK, COST)


async def test_what_a_duplicate_parks_costs_the_same(house: House) -> None:
    await house.lost(Recovery.PARK)
    duplicate = await house.journal.begin(keyed(recovery=Recovery.PARK))
    assert (duplicate.action, await house.spent()) == (Action.PARK, COST)


@pytest.mark.parametrize(("happened", "cost"), [(True, COST), (False, 0), (None, COST)])
async def test_what_a_probe_says_is_paid(house: House, happened: bool | None, cost: int) -> None:  # noqa: FBT001
    begun = await house.ledger.take(await house.lost(Recovery.PROBED))
    assert (begun.action, await house.spent()) == (Action.PROBE, 0)
    await house.probed(begun.entry, happened=happened)
    assert await house.spent() == cost


@pytest.mark.parametrize(("happened", "cost"), [(True, COST), (False, 0)])
async def test_a_probe_that_can_tell_later_does_not_charge_twice(
    house: House,
    happened: bool,  # noqa: FBT001
    cost: int,
) -> None:
    begun = await house.ledger.take(await house.lost(Recovery.PROBED))
    await house.probed(begun.entry, happened=None)
    [unsure] = await house.ledger.unsure(10)
    assert (unsure.state, await house.spent()) == (State.UNKNOWN, COST)
    await house.probed(unsure, happened=happened)
    assert await house.spent() == cost


@pytest.mark.parametrize(("happened", "cost"), [(True, COST), (False, 0)])
async def test_an_operator_who_says_that_it_did_not_happen_gives_it_back(
    house: House,
    happened: bool,  # noqa: FBT001
    cost: int,
) -> None:
    parked = (await house.ledger.take(await house.lost(Recovery.PARK))).entry
    assert await house.spent() == COST
    assert await house.ledger.settle(parked, happened=happened, who="boss", why="I looked")
    assert await house.spent() == cost


@pytest.mark.parametrize(("state", "cost"), [(State.FAILED, 0), (State.UNKNOWN, COST)])
async def test_what_is_not_run_again_costs_only_if_it_was_tried(
    house: House, state: State, cost: int
) -> None:
    begun = await house.ledger.take(await house.lost(Recovery.AGAIN))
    assert begun.action is Action.AGAIN
    assert (await house.journal.end(failed(begun.entry, state, "not_recovered", "no"))).accepted
    assert await house.spent() == cost


@pytest.mark.parametrize(("state", "cost"), [(State.SUCCEEDED, COST), (State.UNKNOWN, COST)])
async def test_what_was_unknown_and_is_run_again_under_its_key_costs_once(
    house: House, state: State, cost: int
) -> None:
    begun = await house.ledger.take(await house.lost(Recovery.KEYED))
    assert (await house.journal.end(failed(begun.entry, State.UNKNOWN, "late", "no"))).accepted
    assert await house.spent() == COST
    again = await house.journal.begin(keyed(recovery=Recovery.KEYED))
    assert (again.action, await house.spent()) == (Action.AGAIN, 0)
    ended = msgspec.structs.replace(again.entry, state=state)
    assert (await house.journal.end(ended)).accepted
    assert await house.spent() == cost
