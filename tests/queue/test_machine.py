"""Whatever workers, brokers and clocks do, in whatever order: the table does what the twin does."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.queue.stand import FAR_NS, Stand, ended, in_memory, in_tables, item
from tests.thorough import some
from toolgate.queue.queue import Ended, Taken
from toolgate.store.database import Database
from toolgate.store.migrate import migrate
from toolgate.store.records import queue as table
from toolgate.store.sqlite import Sqlite
from toolgate.testing.queue import MemoryQueue, Row, in_order

pytestmark = pytest.mark.req("P6", "S2")
T = TypeVar("T")
SECOND = 1_000_000_000
START_NS = 1_800_000_000 * SECOND
tenants = st.sampled_from(["acme", "acme", "globex", "umbrella"])
orders = st.sampled_from(["", "", "x", "y"])
# Leases end soon, and few calls are there at a time: so that they are lost and taken again.
seconds = st.sampled_from([0.0, 1.0, 1.0, 5.0])
places = st.integers(0, 8)
some_of = st.lists(places, max_size=4)
MOST_OPEN = 6
SETTINGS = settings(
    max_examples=some(20, 200),
    stateful_step_count=40,
    deadline=None,
    # What fails is made short where there is time for it.
    phases=some((Phase.reuse, Phase.generate), tuple(Phase)),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Calls(RuleBasedStateMachine):
    """Rules are done to both of them; invariants are what must hold whatever both do."""

    def __init__(
        self, runner: asyncio.Runner, database: Database, patch: pytest.MonkeyPatch
    ) -> None:
        super().__init__()
        self.runner = runner
        self.database = database
        self.now = START_NS
        patch.setattr("toolgate.clock.unix_ns", lambda: self.now)
        self.twin = in_memory()
        runner.run(database.write(lambda connection: connection.execute(table.delete())))
        self.opened = in_tables(database)
        self.stand = runner.run(self.opened.__aenter__())
        self.differed = False
        self.names: list[str] = []
        # All that anybody was ever given, and who has it by what they were told.
        self.given: list[Taken] = []
        self.held: dict[str, tuple[int, int]] = {}
        self.fences: dict[str, int] = {}

    def teardown(self) -> None:
        """Nothing is lost: all that was ever put comes to its end."""
        if not self.differed:
            self.settle()
        self.runner.run(self.opened.__aexit__(None, None, None))

    def settle(self) -> None:
        for _ in range(200):
            self.tick(1_000)
            self.sweep()
            given = len(self.given)
            self.take(5, 10.0)
            self.end_together([ended(one) for one in self.given[given:]])
            if not self.runner.run(self.stand.queue.waiting()):
                break
        over = self.runner.run(self.stand.queue.over(self.names))
        assert {one.call_id for one in over} == set(self.names)

    def both(self, real: Coroutine[Any, Any, T], model: Coroutine[Any, Any, T]) -> T:
        found, wanted = self.runner.run(real), self.runner.run(model)
        self.differed = self.differed or found != wanted
        assert found == wanted
        return found

    def some_names(self, which: list[int]) -> list[str]:
        """Of those that were put last."""
        return [self.names[-1 - one % len(self.names)] for one in which if self.names]

    def open_calls(self) -> int:
        return sum(self.runner.run(self.twin.queue.waiting()).values())

    def receive(self, found: Sequence[Taken], lease: float) -> None:
        for one in found:
            _, until_ns = self.held.get(one.call_id, (0, 0))
            assert until_ns <= self.now, "two hold it"
            assert one.fence > self.fences.get(one.call_id, 0), "its fence did not grow"
            self.fences[one.call_id] = one.fence
            self.held[one.call_id] = (one.fence, self.now + round(lease * SECOND))
            self.given.append(one)

    def let_go(self, one: Taken | Ended) -> None:
        if self.held.get(one.call_id, (0, 0))[0] == one.fence:
            del self.held[one.call_id]

    @precondition(lambda self: self.open_calls() < MOST_OPEN)
    @rule(tenant=tenants, order=orders, brief=st.booleans())
    def put(self, tenant: str, order: str, *, brief: bool) -> None:
        name = f"c{len(self.names)}"
        self.names.append(name)
        given = item(
            name,
            tenant,
            order=f"{tenant}/{order}" if order else "",
            expires_ns=self.now + 3 * SECOND if brief else FAR_NS,
        )
        self.both(self.stand.queue.put(given), self.twin.queue.put(given))

    @rule(most=st.integers(1, 5), lease=seconds)
    def take(self, most: int, lease: float) -> None:
        found = self.both(self.stand.queue.take(most, lease), self.twin.queue.take(most, lease))
        self.receive(found, lease)

    @rule(which=some_of, lease=seconds)
    def claim(self, which: list[int], lease: float) -> None:
        names = self.some_names(which)
        found = self.both(self.stand.queue.claim(names, lease), self.twin.queue.claim(names, lease))
        self.receive(found, lease)

    @rule(most=st.integers(1, 5), lease=seconds)
    def take_sent(self, most: int, lease: float) -> None:
        real, model = self.stand.queue, self.twin.queue
        self.receive(self.both(real.take_sent(most, lease), model.take_sent(most, lease)), lease)

    @precondition(lambda self: self.given)
    @rule(which=some_of, lease=seconds)
    def renew(self, which: list[int], lease: float) -> None:
        """Of those that were ever given, the last and the lost."""
        some = [self.given[-1 - one % len(self.given)] for one in which]
        self.both(self.stand.queue.renew(some, lease), self.twin.queue.renew(some, lease))
        for one in some:
            if self.held.get(one.call_id, (0, 0))[0] == one.fence:
                self.held[one.call_id] = (one.fence, self.now + round(lease * SECOND))

    @precondition(lambda self: self.given)
    @rule(which=st.lists(places, min_size=1, max_size=3), dies=st.booleans())
    def end(self, which: list[int], *, dies: bool) -> None:
        """Of those that were ever given, the last and the lost."""
        chosen = dict.fromkeys(-1 - one % len(self.given) for one in which)
        why = "it is broken" if dies else ""
        self.end_together([ended(self.given[one], b"{}", why) for one in chosen])

    def end_together(self, ends: list[Ended]) -> None:
        async def together(stand: Stand) -> list[bool]:
            return await asyncio.gather(*(stand.queue.end(one) for one in ends))

        for one, was_own in zip(
            ends, self.both(together(self.stand), together(self.twin)), strict=True
        ):
            if was_own:
                assert self.fences[one.call_id] == one.fence
                self.let_go(one)

    @precondition(lambda self: self.given)
    @rule(which=places, pause=seconds, counts=st.booleans())
    def back(self, which: int, pause: float, *, counts: bool) -> None:
        taken = self.given[-1 - which % len(self.given)]
        self.both(
            self.stand.queue.back(taken, pause, counts=counts),
            self.twin.queue.back(taken, pause, counts=counts),
        )
        self.let_go(taken)

    @rule()
    def sweep(self) -> None:
        self.both(self.stand.queue.sweep(), self.twin.queue.sweep())

    @rule(most=st.integers(1, 5), window=st.integers(1, 3), again=seconds)
    def send(self, most: int, window: int, again: float) -> None:
        self.both(
            self.stand.shipping.send(most, window=window, again=again),
            self.twin.shipping.send(most, window=window, again=again),
        )

    @rule(which=some_of)
    def unsent(self, which: list[int]) -> None:
        names = self.some_names(which)
        self.both(self.stand.shipping.unsent(names), self.twin.shipping.unsent(names))

    @rule(which=some_of, tenant=tenants)
    def again(self, which: list[int], tenant: str) -> None:
        for name in self.some_names(which):
            self.both(
                self.stand.dead.again(tenant, name, who="ann", why=""),
                self.twin.dead.again(tenant, name, who="ann", why=""),
            )

    @rule(which=some_of)
    def told(self, which: list[int]) -> None:
        names = self.some_names(which)
        self.both(self.stand.shipping.told(names), self.twin.shipping.told(names))
        self.both(self.stand.shipping.untold(3, after=1.0), self.twin.shipping.untold(3, after=1.0))

    @rule(elapsed=st.sampled_from([1, 1, 2, 6, 20]))
    def tick(self, elapsed: int) -> None:
        self.now += elapsed * SECOND

    @invariant()
    def both_have_the_same_rows(self) -> None:
        rows = self.runner.run(self.database.read(_rows))
        assert isinstance(self.twin.queue, MemoryQueue)
        assert rows == [_told(row) for row in in_order(self.twin.queue.rows.values())]
        assert self.runner.run(self.stand.queue.depth()) == self.runner.run(self.twin.queue.depth())

    @invariant()
    def one_of_an_order_is_held_at_a_time(self) -> None:
        assert isinstance(self.twin.queue, MemoryQueue)
        orders = [
            self.twin.queue.rows[name].item.order
            for name, (_, until_ns) in self.held.items()
            if until_ns > self.now
        ]
        named = [order for order in orders if order]
        assert len(named) == len(set(named))


def _rows(connection: sa.Connection) -> list[tuple[Any, ...]]:
    columns = [table.c[name] for name in _COLUMNS]
    return [tuple(row) for row in connection.execute(sa.select(*columns).order_by(table.c.id))]


_COLUMNS = (
    *("call_id", "tenant_id", "order_key", "state", "message", "attempts", "fence", "due_ns"),
    *("queued_ns", "expires_ns", "ended_ns", "output", "why", "told"),
)


def _told(row: Row) -> tuple[Any, ...]:
    item = row.item
    return (
        *(item.call_id, item.tenant, item.order, row.stage, row.message, row.attempts, row.fence),
        *(row.due_ns, row.queued_ns, row.expires_ns, row.ended_ns, row.output, row.why),
        int(row.told),
    )


def test_the_table_does_what_the_twin_does(monkeypatch: pytest.MonkeyPatch) -> None:
    with asyncio.Runner() as runner:
        database = Sqlite(None)

        class Here(Calls):
            def __init__(self) -> None:
                super().__init__(runner, database, monkeypatch)

        runner.run(migrate(database))
        try:
            run_state_machine_as_test(Here, settings=SETTINGS)
        finally:
            runner.run(database.close())
