"""What an owner can tell by itself about its leases."""

import pytest

from toolgate import clock
from toolgate.ledger.owner import Owner

pytestmark = pytest.mark.req("S2")


def test_a_lease_holds_from_when_it_was_asked_for_and_can_be_prolonged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0
    monkeypatch.setattr(clock, "monotonic_ns", lambda: now)
    running = Owner(lease=10).running
    running.add("a", now)
    now = 9 * 10**9
    assert running.holds("a")
    running.add("a", now)
    now = 10 * 10**9
    assert running.holds("a")
    now = 19 * 10**9
    assert not running.holds("a")


def test_what_was_never_claimed_here_is_not_for_it_to_judge() -> None:
    running = Owner(lease=10).running
    assert running.holds("b")
    running.add("b", 0)
    assert list(running) == ["b"]
    running.discard("b")
    running.discard("b")
    assert list(running) == []


def test_no_two_owners_have_one_name() -> None:
    assert Owner().name != Owner().name
