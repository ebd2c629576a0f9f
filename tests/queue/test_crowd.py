"""How many are queued is never counted as too few, whenever the store is asked."""

from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import some
from toolgate.queue.crowd import Crowd

pytestmark = pytest.mark.req("P6")
MOST, MOST_OF_ONE = 5, 3


class Table:
    """One process that queues calls, and the store that has them, a step at a time."""

    def __init__(self) -> None:
        self.crowd = Crowd(MOST, MOST_OF_ONE)
        self.there: Counter[str] = Counter()
        self.coming: list[tuple[str, ExitStack]] = []
        # What a count that is under way has found.
        self.found: Counter[str] | None = None
        self.written = 0

    def come(self, tenant: str) -> bool:
        held = ExitStack()
        if not held.enter_context(self.crowd.place(tenant)):
            return False
        self.coming.append((tenant, held))
        return True

    def write(self, tenant: str) -> None:
        """The oldest of those on their way is on record, and only later known to be."""
        if self.written < len(self.coming):
            self.there[self.coming[self.written][0]] += 1
            self.written += 1

    def arrive(self, tenant: str) -> None:
        if self.written:
            self.written -= 1
            self.coming.pop(0)[1].close()

    def end(self, tenant: str) -> None:
        if self.there[tenant]:
            self.there[tenant] -= 1

    def begin(self, _tenant: str) -> None:
        self.crowd.begin()
        self.found = None

    def look(self, _tenant: str) -> None:
        self.found = Counter(self.there)

    def count(self, _tenant: str) -> None:
        if self.found is not None:
            self.crowd.count(self.found)
            self.found = None

    @property
    def held(self) -> Counter[str]:
        """On record, or about to be."""
        return self.there + Counter(tenant for tenant, _ in self.coming[self.written :])


STEPS = ("come", "come", "write", "arrive", "end", "begin", "look", "count")


@settings(max_examples=some(300, 20_000))
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(["one", "two"])), max_size=60))
def test_no_more_are_queued_than_may_be_and_no_place_is_lost(steps: list[tuple[str, str]]) -> None:
    table = Table()
    for step, tenant in steps:
        getattr(table, step)(tenant)
        assert table.held.total() <= MOST, "of all"
        assert max(table.held.values(), default=0) <= MOST_OF_ONE, "of one"
    while table.coming:
        table.write("one")
        table.arrive("one")
    for step in ("begin", "look", "count"):
        getattr(table, step)("one")
    free = min(MOST_OF_ONE - table.there["one"], MOST - table.there.total())
    assert [table.come("one") for _ in range(free + 1)] == [True] * free + [False]


def test_one_that_is_on_its_way_while_the_store_is_asked_is_not_forgotten() -> None:
    table = Table()
    assert [table.come("one") for _ in range(4)] == [True, True, True, False]
    # Whoever asks now finds nothing, and all three are written afterwards.
    for step in ("begin", "look", "count"):
        getattr(table, step)("one")
    assert not table.come("one")


def test_what_never_arrived_gives_its_place_back_at_the_next_count() -> None:
    table = Table()
    for _ in range(3):
        assert table.come("one")
    for _, held in table.coming:
        held.close()
    assert not table.come("one"), "nobody knows yet whether they are on record"
    for step in ("begin", "look", "count"):
        getattr(table, step)("one")
    assert table.come("one")
