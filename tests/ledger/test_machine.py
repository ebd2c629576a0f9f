"""Whatever workers, people and stores do, in whatever order: an effect happens once."""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.ledger.attempts import LEASE, Attempt, Business, Fate, World
from toolgate.ledger.machine import (
    Action,
    Approve,
    Deny,
    Finish,
    Recovery,
    Release,
    Renew,
    Settle,
    Start,
    Supersede,
    Tick,
    Undone,
)
from toolgate.ledger.state import LAST, OPEN, State

pytestmark = pytest.mark.req("S2", "S3", "S4", "S6")
LONG = "TOOLGATE_CHAOS" in os.environ
EXAMPLES, STEPS = (20_000, 80) if LONG else (500, 40)
fates: st.SearchStrategy[Fate] = st.sampled_from(["told", "told", "told", "lost", "undone"])
keys = st.sampled_from("abcd")
digests = st.sampled_from(["same", "same", "same", "other"])
BY_KEY = {"a": Recovery.PARK, "b": Recovery.PROBED, "c": Recovery.KEYED, "d": Recovery.AGAIN}


class Ledger(RuleBasedStateMachine):
    """Rules are what can happen; invariants what must not."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.revoked = False

    def _some(self, draw: st.DataObject, found: list[Business]) -> Business:
        return draw.draw(st.sampled_from(found))

    def _hand(self, draw: st.DataObject, *, paused: bool = False) -> Attempt:
        found = [one for one in self.world.attempts if one.paused is paused]
        return draw.draw(st.sampled_from(found))

    def _is_one_at_work(self, *, paused: bool = False) -> bool:
        return any(one.paused is paused for one in self.world.attempts)

    @precondition(lambda self: not self.revoked)
    @rule(key=keys, digest=digests, fate=fates, may_start=st.sampled_from([True, True, False]))
    def submit(self, key: str, digest: str, fate: Fate, may_start: bool) -> None:  # noqa: FBT001
        known = self.world.keys.get(key)
        state = known.slot.state if known else State.RECEIVED
        repeatable = known is not None and known.slot.recovery in {Recovery.AGAIN, Recovery.KEYED}
        action = self.world.submit(key, BY_KEY[key], digest, fate, may_start=may_start)
        if action is Action.CONFLICT:
            assert known is not None
            assert known.slot.digest != digest
        if state is State.UNKNOWN and not repeatable:
            assert action in {Action.REPLAY, Action.CONFLICT, None}

    @rule()
    def revoke(self) -> None:
        """Permission is taken away, or given back: a call that has none does not come this far."""
        self.revoked = not self.revoked

    @precondition(lambda self: self.world.keys)
    @rule(draw=st.data())
    def supersede(self, draw: st.DataObject) -> None:
        business = self._some(draw, list(self.world.keys.values()))
        self.world.tell(business, Supersede())

    @precondition(lambda self: self.world.keys)
    @rule(draw=st.data())
    def approve(self, draw: st.DataObject) -> None:
        business = self._some(draw, list(self.world.keys.values()))
        before = business.slot.approved
        self.world.tell(business, Approve())
        business.approvals += business.slot.approved and not before

    @precondition(lambda self: self.world.keys)
    @rule(draw=st.data())
    def deny(self, draw: st.DataObject) -> None:
        business = self._some(draw, list(self.world.keys.values()))
        if business.slot.state is State.WAITING:
            business.approvals -= business.slot.approved
        self.world.tell(business, Deny())

    @rule(dt=st.sampled_from([1, LEASE - 1, LEASE, 3 * LEASE, 12 * LEASE]))
    def tick(self, dt: int) -> None:
        self.world.now += dt
        for business in self.world.keys.values():
            self.world.tell(business, Tick())

    @precondition(lambda self: self._is_one_at_work())
    @rule(draw=st.data(), fate=fates)
    def go_on(self, draw: st.DataObject, fate: Fate) -> None:
        self.world.go_on(self._hand(draw), fate)

    @precondition(lambda self: self._is_one_at_work())
    @rule(draw=st.data(), fate=fates, knows=st.booleans())
    def give_up(self, draw: st.DataObject, fate: Fate, knows: bool) -> None:  # noqa: FBT001
        self.world.give_up(self._hand(draw), fate, knows=knows)

    @precondition(lambda self: self._is_one_at_work())
    @rule(draw=st.data(), fate=fates)
    def release(self, draw: st.DataObject, fate: Fate) -> None:
        """Refused before it began; `submit` is how it is brought again."""
        attempt = self._hand(draw)
        if self.world.release(attempt, fate) is Action.NOTHING:
            assert attempt.of.slot.state is State.RELEASED
            assert attempt.of.slot.tried is attempt.again

    @precondition(lambda self: any(b.slot.state is State.RELEASED for b in self.world.all))
    @rule(draw=st.data(), fate=fates, state=st.sampled_from([State.EXPIRED, State.FAILED]))
    def bring_no_more(self, draw: st.DataObject, fate: Fate, state: State) -> None:
        released = [one for one in self.world.all if one.slot.state is State.RELEASED]
        self.world.bring_no_more(self._some(draw, released), state, fate)

    @precondition(lambda self: self._is_one_at_work())
    @rule(draw=st.data(), fate=fates)
    def renew(self, draw: st.DataObject, fate: Fate) -> None:
        self.world.renew(self._hand(draw), fate)

    @precondition(lambda self: self.world.attempts)
    @rule(draw=st.data())
    def crash(self, draw: st.DataObject) -> None:
        self.world.crash(draw.draw(st.sampled_from(self.world.attempts)))

    @precondition(lambda self: self._is_one_at_work())
    @rule(draw=st.data())
    def pause(self, draw: st.DataObject) -> None:
        self._hand(draw).paused = True

    @precondition(lambda self: self._is_one_at_work(paused=True))
    @rule(draw=st.data())
    def resume(self, draw: st.DataObject) -> None:
        self._hand(draw, paused=True).paused = False

    @precondition(lambda self: self.world.keys)
    @rule(draw=st.data(), fate=fates)
    def take(self, draw: st.DataObject, fate: Fate) -> None:
        self.world.take(self._some(draw, list(self.world.keys.values())), fate)

    @precondition(lambda self: self.world.all)
    @rule(draw=st.data(), fate=fates)
    def undo(self, draw: st.DataObject, fate: Fate) -> None:
        self.world.undo(self._some(draw, self.world.all), fate)

    @precondition(lambda self: any(b.slot.state is State.UNKNOWN for b in self.world.all))
    @rule(draw=st.data())
    def settle(self, draw: st.DataObject) -> None:
        """An operator has looked, and says what is so."""
        unknown = [one for one in self.world.all if one.slot.state is State.UNKNOWN]
        business = self._some(draw, unknown)
        self.world.tell(business, Settle(happened=bool(business.effects)))

    @precondition(lambda self: self.world.late)
    @rule(draw=st.data())
    def speak_late(self, draw: st.DataObject) -> None:
        """An owner that was thought gone, or was, says something after all."""
        late = draw.draw(st.sampled_from(self.world.late))
        slot = late.of.slot
        if slot.fence == late.fence:
            return
        for event in (
            Start(late.fence),
            Finish(fence=late.fence, state=State.SUCCEEDED),
            Finish(fence=late.fence, state=State.FAILED),
            Release(fence=late.fence),
            Renew(late.fence, self.world.now + LEASE),
            Undone(fence=late.fence, done=True),
        ):
            assert self.world.tell(late.of, event) is Action.REFUSE
            assert late.of.slot == slot

    @invariant()
    def an_effect_happens_once(self) -> None:
        for business in self.world.all:
            if business.slot.recovery in {Recovery.PARK, Recovery.PROBED}:
                assert len(business.effects) <= 1, business
            # Tried again, each under a fence of its own; the far side knows them by one key.
            assert len(business.effects) == len(set(business.effects)), business
            assert len(business.undos) == len(set(business.undos)), business

    @invariant()
    def what_is_said_to_have_happened_did(self) -> None:
        for business in self.world.all:
            if business.slot.state is State.SUCCEEDED:
                assert business.effects, business
            if business.slot.state is State.COMPENSATED:
                assert business.undos, business
            if business.slot.state in LAST - {State.COMPENSATED, State.FAILED}:
                assert not business.effects, business

    @invariant()
    def what_is_brought_again_was_not_begun(self) -> None:
        """Or it may be: by its nature, or because the far side knows it by its key."""
        for business in self.world.all:
            if business.slot.state is State.RELEASED and business.effects:
                assert business.slot.tried, business
                assert business.slot.recovery in {Recovery.KEYED, Recovery.AGAIN}, business

    @invariant()
    def an_approval_is_used_once(self) -> None:
        for business in self.world.all:
            assert business.used <= business.approvals, business

    @invariant()
    def nothing_is_stuck(self) -> None:
        """What has no live owner can be taken by the next who comes."""
        for business in self.world.all:
            slot = business.slot
            assert slot.state not in OPEN or slot.lease_ns is not None, business


def test_an_effect_happens_once_whatever_happens() -> None:
    run_state_machine_as_test(
        Ledger,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def second_owner(*, fenced: bool) -> World:
    """An owner stalls between its intent and its effect; a probe finds nothing; both go on."""
    world = World(fenced=fenced)
    assert world.submit("b", Recovery.PROBED, "same", "told", may_start=True) is Action.RUN
    [first] = world.attempts
    world.now += LEASE
    assert world.take(first.of, "told") is Action.PROBE
    for _probed_acted_told in range(3):
        world.go_on(world.attempts[-1], "told")
    assert first.of.slot.state is State.SUCCEEDED
    world.go_on(first, "told")
    return world


def test_an_owner_whose_lease_is_over_does_not_begin() -> None:
    assert len(second_owner(fenced=True).keys["b"].effects) == 1


def test_without_a_look_at_its_own_lease_a_stalled_owner_would_act_twice() -> None:
    assert len(second_owner(fenced=False).keys["b"].effects) == 2
