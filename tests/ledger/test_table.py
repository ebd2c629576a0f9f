"""Every state meets every event: along the moves that are drawn, or not at all."""

import itertools
from collections.abc import Iterator

import msgspec
import pytest

from toolgate.ledger.machine import (
    Action,
    Approve,
    Deny,
    Event,
    Finish,
    GiveUp,
    Recovery,
    Release,
    Renew,
    Settle,
    Slot,
    Start,
    Submit,
    Supersede,
    Take,
    Tick,
    Undo,
    Undone,
    is_live,
    step,
)
from toolgate.ledger.state import LAST, MOVES, OPEN, State, before, reachable

pytestmark = pytest.mark.req("S2", "S3")
NOW = 1_000
FENCE = 7
EVENTS: tuple[Event, ...] = (
    *(
        Submit(digest=digest, lease_ns=2_000, may_start=may_start)
        for digest in ("same", "other")
        for may_start in (True, False)
    ),
    *(Start(fence) for fence in (FENCE, FENCE - 1)),
    *(
        Finish(fence=fence, state=state, permanent=permanent)
        for fence in (FENCE, FENCE - 1)
        for state in State
        for permanent in (True, False)
    ),
    *(Renew(fence, 2_000) for fence in (FENCE, FENCE - 1)),
    *(Release(fence=fence, doubt=doubt) for fence in (FENCE, FENCE - 1) for doubt in (True, False)),
    *(GiveUp(state) for state in State),
    *(Undone(fence=fence, done=done) for fence in (FENCE, FENCE - 1) for done in (True, False)),
    *(Settle(happened) for happened in (True, False)),
    Take(2_000),
    Undo(2_000),
    Approve(),
    Deny(),
    Supersede(),
    Tick(),
)
OWNERS = (Start, Finish, Release, Renew, Undone)
IDLE = {Action.REPLAY, Action.FORGET, Action.WAIT, Action.CONFLICT, Action.REFUSE}
MINE = {Action.RUN, Action.AGAIN, Action.PROBE, Action.PARK, Action.COMPENSATE}


def slots(state: State) -> Iterator[Slot]:
    times = (None, NOW, NOW + 1)
    flags = (True, False)
    for lease, expires, recovery, tried, approved, permanent in itertools.product(
        times, times, Recovery, flags, flags, flags
    ):
        yield Slot(
            state=state,
            digest="same",
            fence=FENCE,
            lease_ns=lease,
            expires_ns=expires,
            recovery=recovery,
            tried=tried,
            approved=approved,
            permanent=permanent,
        )


@pytest.mark.parametrize("state", State)
def test_an_event_moves_along_the_table_or_changes_nothing(state: State) -> None:
    for slot in slots(state):
        for event in EVENTS:
            after = step(slot, event, NOW)
            told = f"{slot} {event} {after}"
            if after.slot.state is not state:
                assert after.slot.state in MOVES[state], told
            if after.action in IDLE:
                assert after.slot == slot, told
            if after.action in MINE and not isinstance(event, Start):
                assert after.slot.fence == slot.fence + 1, told
            assert after.slot.fence in {slot.fence, slot.fence + 1}, told
            assert after.slot.digest == slot.digest, told
            if not isinstance(event, Release):
                assert after.slot.tried >= slot.tried, told


@pytest.mark.parametrize("state", sorted(LAST))
def test_nothing_moves_what_is_over(state: State) -> None:
    for slot in slots(state):
        for event in EVENTS:
            assert step(slot, event, NOW).slot == slot


def test_what_was_done_can_only_be_taken_back() -> None:
    assert MOVES[State.SUCCEEDED] == {State.COMPENSATING}
    for slot in slots(State.SUCCEEDED):
        moved = {step(slot, event, NOW).slot.state for event in EVENTS}
        assert moved == {State.SUCCEEDED, State.COMPENSATING}


@pytest.mark.parametrize("state", State)
def test_an_owner_with_an_old_fence_has_nothing_to_say(state: State) -> None:
    late = [one for one in EVENTS if isinstance(one, OWNERS) and one.fence != FENCE]
    assert len(late) > 4
    for slot in slots(state):
        for event in late:
            after = step(slot, event, NOW)
            assert (after.slot, after.action) == (slot, Action.REFUSE)


def test_without_the_fence_a_late_owner_would_be_believed() -> None:
    slot = Slot(state=State.STARTED, digest="same", fence=FENCE, tried=True)
    late = Finish(fence=FENCE - 1, state=State.FAILED)
    assert step(slot, late, NOW).action is Action.REFUSE
    forged = msgspec.structs.replace(late, fence=FENCE)
    assert step(slot, forged, NOW).slot.state is State.FAILED


@pytest.mark.parametrize(
    ("lease", "live"), [(None, True), (0, False), (NOW, False), (NOW + 1, True)]
)
def test_a_missing_lease_means_live_and_zero_is_a_time(lease: int | None, live: bool) -> None:  # noqa: FBT001
    for state in OPEN:
        slot = Slot(state=state, digest="same", lease_ns=lease, tried=True)
        assert is_live(slot, NOW) is live
        action = step(slot, Take(2_000), NOW).action
        assert (action in {Action.REFUSE, Action.WAIT}) is live


@pytest.mark.parametrize("state", [State.UNKNOWN, *sorted(OPEN)])
def test_time_does_not_free_the_key_of_what_nobody_knows_the_end_of(state: State) -> None:
    slot = Slot(state=state, digest="same", fence=FENCE, expires_ns=0, tried=True)
    after = step(slot, Submit(digest="same", lease_ns=2_000), NOW)
    assert after.action in {Action.REPLAY, Action.WAIT, Action.PARK}


@pytest.mark.parametrize("state", [State.SUPERSEDED, State.EXPIRED])
def test_a_key_under_which_nothing_was_tried_is_free_for_other_arguments(state: State) -> None:
    slot = Slot(state=state, digest="same", fence=FENCE)
    for digest in ("same", "other"):
        assert step(slot, Submit(digest=digest, lease_ns=1), NOW).action is Action.FORGET


def test_every_state_but_the_first_can_be_reached_and_says_what_came_before() -> None:
    assert MOVES.keys() == set(State)
    assert reachable(State.RECEIVED) == set(State) - {State.RECEIVED}
    for state in State:
        assert before(state) == {one for one in State if state in MOVES[one]}


def test_no_state_can_be_left_without_an_end() -> None:
    for state in State:
        assert state in LAST or reachable(state) & LAST, state


@pytest.mark.req("S6")
@pytest.mark.parametrize("state", State)
def test_without_a_persons_word_nothing_is_begun_that_had_none(state: State) -> None:
    asked = Submit(digest="same", lease_ns=2_000, may_start=False)
    for slot in slots(state):
        assert step(slot, asked, NOW).action not in {Action.RUN, Action.AGAIN}
    lost = Slot(state=State.STARTED, digest="same", lease_ns=0, tried=True, recovery=Recovery.AGAIN)
    agreed = msgspec.structs.replace(lost, agreed=True)
    assert step(agreed, asked, NOW).action is Action.AGAIN


def test_nobody_holds_what_is_parked() -> None:
    lost = Slot(state=State.STARTED, digest="same", lease_ns=0, tried=True)
    for event in (Take(2_000), Submit(digest="same", lease_ns=2_000)):
        after = step(lost, event, NOW)
        assert (after.action, after.slot.lease_ns) == (Action.PARK, None)
