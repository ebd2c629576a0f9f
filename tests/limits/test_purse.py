"""Purses against a model: however calls, writes and pauses fall, nothing is spent twice."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.thorough import some
from toolgate.ledger.budget import Balance, end_of, granted, period_of
from toolgate.ledger.purse import Purse
from toolgate.spec.cost import UNIT

pytestmark = pytest.mark.req("X9")
MOST = 20 * UNIT
LEASE = 10
AMOUNTS = st.sampled_from([UNIT, 3 * UNIT, UNIT // 2])


class Store:
    """What the tables hold: per lease, drawn and until when; and what each kind of call spent."""

    def __init__(self) -> None:
        self.left: dict[str, tuple[int, int]] = {}
        self.behind: dict[str, int] = {}
        self.charged: dict[str, int] = {}

    def save(self, balance: Balance, now: int) -> None:
        self.left[balance.id] = (balance.left, now + LEASE)
        self.behind[balance.id] = balance.behind

    def used(self) -> int:
        return sum(self.behind.values()) + sum(self.charged.values())

    def held(self, now: int) -> int:
        return sum(
            max(left - self.charged.get(id_, 0), 0)
            for id_, (left, until) in self.left.items()
            if until > now
        )


class Spending(RuleBasedStateMachine):
    """Three processes, calls that hold what they were given, and a clock that moves."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1
        self.store = Store()
        self.purses = [Purse(f"p{number}", "acme", "m", "2026-11", MOST) for number in range(3)]
        self.calls: list[tuple[Purse, int]] = []
        self.spent = 0

    @rule(which=st.integers(0, 2), amount=AMOUNTS, lost=st.booleans())
    def take(self, which: int, amount: int, *, lost: bool) -> None:
        purse = self.purses[which]
        if not purse.take(amount, self.now):
            purse.let_go()
            balance = purse.balance(self.now)
            self.store.save(balance, self.now)
            more = granted([amount], max(MOST - self.store.used() - self.store.held(self.now), 0))
            self.store.left[purse.id] = (balance.left + more, self.now + LEASE)
            if lost:
                return
            purse.drawn(more, self.now + LEASE)
            if not purse.take(amount, self.now):
                return
        self.calls.append((purse, amount))

    @rule(ends=st.sampled_from(["spent", "on record", "back"]))
    def end(self, ends: str) -> None:
        if not self.calls:
            return
        purse, amount = self.calls.pop()
        if ends == "back":
            purse.give_back(amount)
            return
        self.spent += amount
        if ends == "spent":
            purse.spend(amount, amount)
        else:
            self.store.charged[purse.id] = self.store.charged.get(purse.id, 0) + amount
            purse.spent_on_record(amount, amount)

    @rule(which=st.integers(0, 2))
    def write(self, which: int) -> None:
        purse = self.purses[which]
        self.store.save(purse.balance(self.now), self.now)
        purse.renewed(self.now + LEASE)

    @rule()
    def tick(self) -> None:
        """Who is alive renews in time; nobody's lease ends while its call runs."""
        self.now += 3
        for which in range(3):
            self.write(which)

    @rule(which=st.integers(0, 2))
    def rest(self, which: int) -> None:
        self.purses[which].let_go()
        self.write(which)

    @invariant()
    def nothing_is_spent_that_was_not_there(self) -> None:
        held = sum(amount for _, amount in self.calls)
        assert self.spent + held <= MOST

    @invariant()
    def the_store_never_counts_less_than_it_may_have_to_pay(self) -> None:
        unwritten = sum(purse.behind - self.store.behind.get(purse.id, 0) for purse in self.purses)
        assert self.store.used() + unwritten == self.spent


TestSpending = Spending.TestCase
TestSpending.settings = settings(max_examples=some(50, 200), stateful_step_count=40, deadline=None)


def test_what_a_lease_held_that_has_ended_is_not_served() -> None:
    purse = Purse("p", "acme", "m", "2026-11", MOST)
    purse.drawn(5 * UNIT, 10)
    assert purse.take(UNIT, 9)
    assert not purse.take(UNIT, 10)
    assert purse.balance(10).left == UNIT


def test_months_are_those_of_the_calendar_in_utc() -> None:
    second = 1_000_000_000
    last = 1_796_083_199 * second  # 2026-11-30 23:59:59 UTC
    assert (period_of(last), period_of(last + second)) == ("2026-11", "2026-12")
    assert end_of("2026-11") == last + second
    assert period_of(end_of("2026-12")) == "2027-01"
    assert period_of(end_of("2024-02") - 1) == "2024-02"
