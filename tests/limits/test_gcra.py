"""The arithmetic of rate limits: what passes, what waits, and what memory it takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.gcra import Meter, limit

pytestmark = pytest.mark.req("X10")
SECOND = 1_000_000_000


def passed(meter: Meter, calls: int, per: float, moments: list[int]) -> list[int]:
    one = (limit("k", calls, per),)
    return [at for at in moments if meter.take(one, at) is None]


def test_all_of_it_can_be_used_at_once_and_then_one_by_one() -> None:
    meter, ten = Meter(), (limit("k", 10, 1.0),)
    now = 5 * SECOND
    assert [meter.take(ten, now) for _ in range(10)] == [None] * 10
    refused = meter.take(ten, now)
    assert refused is not None
    assert refused.wait_ns == SECOND // 10
    assert meter.take(ten, now + refused.wait_ns - 1) is not None
    assert meter.take(ten, now + refused.wait_ns) is None
    assert meter.take(ten, now + refused.wait_ns) is not None


@given(
    st.integers(1, 20),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.lists(st.integers(0, 10 * SECOND), max_size=200).map(sorted),
)
def test_no_stretch_of_time_sees_more_than_was_saved_and_refilled(
    calls: int, per: float, moments: list[int]
) -> None:
    through = passed(Meter(), calls, per, moments)
    for first, at in enumerate(through):
        for last in range(first, len(through)):
            took = through[last] - at
            assert last - first + 1 <= calls + took / (per * SECOND) * calls + 1e-6


def test_the_edge_of_a_window_lets_at_most_twice_as_many_through() -> None:
    """A window that is counted from the clock would let twice as many through in an instant."""
    edge = [*[SECOND - 1] * 100, *[SECOND + 1] * 100, *[2 * SECOND - 2] * 100]
    through = passed(Meter(), 10, 1.0, edge)
    assert sum(at in {SECOND - 1, SECOND + 1} for at in through) == 10
    assert len(through) <= 20


def test_a_call_that_one_limit_refuses_uses_nothing_of_the_others() -> None:
    meter = Meter()
    wide, also, narrow = limit("a", 5, 1.0), limit("b", 5, 1.0), limit("c", 1, 60.0)
    assert meter.take((wide, also, narrow), 0) is None
    for _ in range(50):
        refused = meter.take((wide, also, narrow), 0)
        assert refused is not None
        assert refused.limit is narrow
    # Four are left of each, and no more.
    assert [meter.take((wide, also), 0) is None for _ in range(5)] == [True] * 4 + [False]


def test_a_flood_of_keys_does_not_fill_the_memory_and_frees_nobody_who_has_used_it_up() -> None:
    meter = Meter(most=1_000)
    own = (limit("mine", 100, 60.0),)
    for _ in range(100):
        assert meter.take(own, 0) is None
    for number in range(20_000):
        meter.take((limit(f"k{number}", 100, 60.0),), 0)
        assert len(meter) <= 1_001
    assert meter.take(own, 0) is not None


def test_keys_whose_time_is_past_are_forgotten_first() -> None:
    meter = Meter(most=100)
    for number in range(100):
        meter.take((limit(f"k{number}", 1, 1.0),), 0)
    meter.take((limit("late", 1, 1.0),), 10 * SECOND)
    assert len(meter) == 1


def test_who_was_far_ahead_of_a_larger_limit_waits_no_longer_than_the_new_one_says() -> None:
    meter = Meter()
    for _ in range(1_000):
        meter.take((limit("k", 1_000, 3_600.0),), 0)
    smaller = (limit("k", 10, 1.0),)
    refused = meter.take(smaller, 0)
    assert refused is not None
    assert meter.take(smaller, refused.wait_ns) is None


@pytest.mark.parametrize(("calls", "share"), [(100, 4), (3, 4), (1, 10)])
def test_the_part_of_one_process_refills_by_its_share(calls: int, share: int) -> None:
    part = (limit("k", calls, 1.0, share=share),)
    meter = Meter()
    seconds = 50
    through = sum(meter.take(part, at * SECOND // 1_000) is None for at in range(seconds * 1_000))
    assert through <= seconds * calls / share + max(calls // share, 1)
    assert through >= seconds * calls / share - 1
