"""The breaker against a plain model of it, and its promises one by one."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.thorough import some
from toolgate.breaker import Breaker, Limits, Outcome, Permit, State

SECOND = 1_000_000_000
LIMITS = Limits(
    window=6, at_least=3, failed_share=0.5, slow_share=0.5, slow_seconds=2.0, wait=5.0, probes=2,
    patience=10.0,
)  # fmt: skip
OK, FAILED, IGNORED = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.IGNORED


def pass_through(breaker: Breaker, now: int, outcome: Outcome, *, seconds: int = 0) -> bool:
    permit = breaker.enter(now)
    if permit is not None:
        breaker.leave(permit, now + seconds * SECOND, outcome)
    return permit is not None


def opened() -> Breaker:
    breaker = Breaker(LIMITS)
    for _ in range(3):
        assert pass_through(breaker, 0, FAILED)
    assert breaker.state(0) is State.OPEN
    return breaker


class Model(RuleBasedStateMachine):
    """Keeps every outcome in a list and reads the rules of the docstring off it, slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(LIMITS)
        self.now = 0
        self.state = State.CLOSED
        self.since = 0
        self.seen: list[tuple[bool, bool]] = []
        self.out: list[tuple[Permit, int, int]] = []
        self.period = 0

    def become(self, state: State) -> None:
        self.state, self.since, self.seen = state, self.now, []
        self.period += 1

    def settle(self) -> None:
        if self.state is State.OPEN and self.now - self.since >= 5 * SECOND:
            self.become(State.HALF_OPEN)
        elif self.state is State.HALF_OPEN and self.now - self.since >= 10 * SECOND:
            self.become(State.OPEN)

    def inside(self) -> int:
        return sum(period == self.period for _, period, _ in self.out)

    @rule(seconds=st.floats(0, 12))
    def time_passes(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)

    @rule()
    def somebody_enters(self) -> None:
        self.settle()
        passes = self.state is State.CLOSED or (
            self.state is State.HALF_OPEN and self.inside() + len(self.seen) < 2
        )
        permit = self.breaker.enter(self.now)
        assert (permit is not None) is passes
        if permit is not None:
            self.out.append((permit, self.period, self.now))

    @precondition(lambda self: bool(self.out))
    @rule(which=st.integers(0, 50), outcome=st.sampled_from(list(Outcome)))
    def somebody_leaves(self, which: int, outcome: Outcome) -> None:
        permit, period, started = self.out.pop(which % len(self.out))
        self.settle()
        self.breaker.leave(permit, self.now, outcome)
        if period != self.period or outcome is IGNORED:
            return
        self.seen.append((outcome is FAILED, self.now - started >= 2 * SECOND))
        half = self.state is State.HALF_OPEN
        last = self.seen[-6:]
        if len(last) < (2 if half else 3):
            return
        bad = max(sum(failed for failed, _ in last), sum(slow for _, slow in last))
        if bad >= 0.5 * len(last):
            self.become(State.OPEN)
        elif half:
            self.become(State.CLOSED)

    @invariant()
    def both_agree(self) -> None:
        self.settle()
        assert self.breaker.state(self.now) is self.state


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=some(50, 200), stateful_step_count=40)


@pytest.mark.req("X4")
def test_too_few_calls_do_not_open_it() -> None:
    breaker = Breaker(LIMITS)
    assert [pass_through(breaker, 0, FAILED) for _ in range(4)] == [True, True, True, False]


@pytest.mark.req("X4")
def test_old_outcomes_leave_the_window() -> None:
    breaker = Breaker(LIMITS)
    for outcome in (OK, OK, OK, FAILED, FAILED, OK, OK, OK, OK, FAILED, FAILED):
        assert pass_through(breaker, 0, outcome)
    assert breaker.state(0) is State.CLOSED
    pass_through(breaker, 0, FAILED)
    assert breaker.state(0) is State.OPEN


@pytest.mark.req("X4")
def test_slow_calls_count_although_they_succeed() -> None:
    breaker = Breaker(LIMITS)
    for _ in range(3):
        pass_through(breaker, 0, OK, seconds=2)
    assert breaker.state(2 * SECOND) is State.OPEN


@pytest.mark.req("X4")
def test_what_is_ignored_counts_as_nothing() -> None:
    breaker = Breaker(LIMITS)
    for _ in range(100):
        assert pass_through(breaker, 0, IGNORED)
    breaker = opened()
    later = 5 * SECOND
    for _ in range(100):
        assert pass_through(breaker, later, IGNORED)
    assert breaker.state(later) is State.HALF_OPEN


@pytest.mark.req("X4")
def test_good_probes_close_it_and_bad_ones_open_it_again() -> None:
    for outcome, state in ((OK, State.CLOSED), (FAILED, State.OPEN)):
        breaker = opened()
        assert breaker.enter(5 * SECOND - 1) is None
        assert pass_through(breaker, 5 * SECOND, outcome)
        assert pass_through(breaker, 5 * SECOND, outcome)
        assert breaker.state(5 * SECOND) is state


@pytest.mark.req("X4")
def test_sixty_four_threads_get_no_more_probes_than_there_are() -> None:
    breaker = opened()
    with ThreadPoolExecutor(64) as threads:
        permits = list(threads.map(breaker.enter, [5 * SECOND] * 640))
    assert sum(permit is not None for permit in permits) == 2


@pytest.mark.req("X4")
def test_a_probe_that_never_comes_back_does_not_hold_it_for_ever() -> None:
    breaker = opened()
    lost = [breaker.enter(5 * SECOND) for _ in range(2)]
    assert all(lost)
    assert breaker.enter(14 * SECOND) is None
    assert breaker.state(15 * SECOND) is State.OPEN
    assert breaker.enter(20 * SECOND) is not None
    # Late news of the earlier time changes nothing, however often it comes.
    for permit in [*lost, *lost]:
        assert permit is not None
        breaker.leave(permit, 20 * SECOND, FAILED)
    assert breaker.state(20 * SECOND) is State.HALF_OPEN


@pytest.mark.req("X4")
@pytest.mark.parametrize(
    "odd",
    [
        {"at_least": 0}, {"at_least": 21}, {"probes": 0}, {"failed_share": 0.0},
        {"slow_share": 1.1}, {"wait": 0.0}, {"patience": -1.0}, {"slow_seconds": 0.0},
    ],
)  # fmt: skip
def test_limits_that_cannot_be_meant_are_refused(odd: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="breaker"):
        Limits(**odd)  # pyright: ignore[reportArgumentType]
