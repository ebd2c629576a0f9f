"""A model of workers at a ledger: slots by key, and attempts that can stall, fall and come late."""

from dataclasses import dataclass, field
from typing import Literal

from toolgate.ledger.machine import (
    Action,
    Event,
    Finish,
    GiveUp,
    Recovery,
    Release,
    Renew,
    Slot,
    Start,
    Submit,
    Take,
    Undo,
    Undone,
    step,
)
from toolgate.ledger.state import LAST, State

LEASE = 10
TTL = 100
Kind = Literal["run", "probe", "undo"]
# What became of a write: it went well, it was done and nobody heard of it, or it was not done.
Fate = Literal["told", "lost", "undone"]


@dataclass
class Business:
    """One slot, and what really happened on its behalf."""

    slot: Slot
    # By the fence it was done under; the far side sees one key for all of them.
    effects: list[int] = field(default_factory=list)
    undos: list[int] = field(default_factory=list)
    approvals: int = 0
    used: int = 0


@dataclass
class Attempt:
    """One worker's hand on one slot."""

    of: Business
    kind: Kind
    fence: int
    lease_ns: int
    started: bool
    # An earlier owner may have done it.
    again: bool = False
    acted: bool = False
    paused: bool = False


class World:
    """The store, its clock and who works at it."""

    def __init__(self, *, fenced: bool = True) -> None:
        self.now = 0
        self.keys: dict[str, Business] = {}
        self.past: list[Business] = []
        self.attempts: list[Attempt] = []
        self.late: list[Attempt] = []
        # Guard off: an owner goes on to its effect although its lease is over.
        self.fenced = fenced

    @property
    def all(self) -> list[Business]:
        return [*self.past, *self.keys.values()]

    def tell(self, business: Business, event: Event, fate: Fate = "told") -> Action | None:
        """One transaction. `None`: whoever asked does not know whether it was done."""
        before = business.slot
        after = step(before, event, self.now)
        if fate == "undone":
            return None
        self._check(business, before, after.slot)
        business.slot = after.slot
        if before.approved and not after.slot.approved:
            business.used += 1
        return None if fate == "lost" else after.action

    def _check(self, business: Business, before: Slot, after: Slot) -> None:
        assert after.fence >= before.fence
        if before.state in LAST:
            assert after == before
        if before.state is State.SUCCEEDED:
            assert after.state in {State.SUCCEEDED, State.COMPENSATING}
        if after.state is State.FAILED is not before.state and before.tried:
            repeatable = business.slot.recovery is Recovery.AGAIN
            assert repeatable or not business.effects, "what is called failed did not happen"

    def submit(
        self, key: str, recovery: Recovery, digest: str, fate: Fate, *, may_start: bool
    ) -> Action | None:
        business = self.keys.get(key) or self._new(key, recovery, digest)
        event = Submit(digest=digest, lease_ns=self.now + LEASE, may_start=may_start)
        after = step(business.slot, event, self.now)
        if after.action is Action.FORGET:
            self.past.append(self.keys.pop(key))
            return self.submit(key, recovery, digest, fate, may_start=may_start)
        action = self.tell(business, event, fate)
        # The claim and the intent are one transaction.
        if after.action in {Action.RUN, Action.AGAIN} and fate != "undone":
            self.tell(business, Start(business.slot.fence))
        if action in {Action.RUN, Action.AGAIN}:
            self._attempt(business, "run", started=True, again=action is Action.AGAIN)
        return action

    def take(self, business: Business, fate: Fate) -> Action | None:
        undoing = business.slot.state is State.COMPENSATING
        action = self.tell(business, Take(self.now + LEASE), fate)
        if action in {Action.RUN, Action.AGAIN}:
            self._attempt(business, "run", started=False, again=action is Action.AGAIN)
        elif action is Action.PROBE:
            self._attempt(business, "probe", started=False)
        elif action is Action.COMPENSATE:
            assert undoing
            self._attempt(business, "undo", started=True)
        return action

    def undo(self, business: Business, fate: Fate) -> Action | None:
        action = self.tell(business, Undo(self.now + LEASE), fate)
        if action is Action.COMPENSATE:
            self._attempt(business, "undo", started=True)
        return action

    def holds(self, attempt: Attempt) -> bool:
        """What an owner can tell by itself: it acts only while its lease lasts."""
        return not self.fenced or self.now < attempt.lease_ns

    def go_on(self, attempt: Attempt, fate: Fate) -> None:
        """The owner's next step."""
        if attempt.kind == "probe":
            self._probe(attempt, fate)
        elif not attempt.started:
            done = self.tell(attempt.of, Start(attempt.fence), fate)
            attempt.started = done is Action.RUN
            if not attempt.started:
                self._leave(attempt)
        elif not attempt.acted:
            if self.holds(attempt):
                effects = attempt.of.undos if attempt.kind == "undo" else attempt.of.effects
                effects.append(attempt.fence)
                attempt.acted = True
            else:
                self._leave(attempt)
        else:
            self._over(attempt, fate, done=True)

    def give_up(self, attempt: Attempt, fate: Fate, *, knows: bool) -> None:
        """The tool failed: before its effect, as far as anyone knows, or it cannot be told."""
        if attempt.kind != "run" or not attempt.started:
            self._leave(attempt)
        elif attempt.acted or not knows or self._in_doubt(attempt):
            end = Finish(fence=attempt.fence, state=State.UNKNOWN)
            self.tell(attempt.of, end, fate)
            self._leave(attempt)
        else:
            self._over(attempt, fate, done=False)

    def release(self, attempt: Attempt, fate: Fate) -> Action | None:
        """It was refused before its effect: whoever brought it brings it again."""
        if attempt.kind != "run" or not attempt.started or attempt.acted:
            return None
        doubt = attempt.again
        done = self.tell(attempt.of, Release(fence=attempt.fence, doubt=doubt), fate)
        self._leave(attempt)
        return done

    def bring_no_more(self, business: Business, state: State, fate: Fate) -> Action | None:
        """Its time in the queue is over, or nobody wants it."""
        return self.tell(business, GiveUp(state), fate)

    def renew(self, attempt: Attempt, fate: Fate) -> None:
        lease = self.now + LEASE
        if self.tell(attempt.of, Renew(attempt.fence, lease), fate) is Action.NOTHING:
            attempt.lease_ns = lease

    def crash(self, attempt: Attempt) -> None:
        self._leave(attempt)

    def _probe(self, attempt: Attempt, fate: Fate) -> None:
        """Asks the world, believes it, and either says so or runs it."""
        if attempt.of.effects:
            self._over(attempt, fate, done=True)
        elif self.tell(attempt.of, Start(attempt.fence), fate) is Action.RUN:
            attempt.kind, attempt.started = "run", True
        else:
            self._leave(attempt)

    def _over(self, attempt: Attempt, fate: Fate, *, done: bool) -> None:
        if attempt.kind == "undo":
            self.tell(attempt.of, Undone(fence=attempt.fence, done=done), fate)
        else:
            state = State.SUCCEEDED if done else State.FAILED
            self.tell(attempt.of, Finish(fence=attempt.fence, state=state), fate)
        self._leave(attempt)

    def _leave(self, attempt: Attempt) -> None:
        self.attempts.remove(attempt)
        self.late.append(attempt)

    def _attempt(
        self, business: Business, kind: Kind, *, started: bool, again: bool = False
    ) -> None:
        fence = business.slot.fence
        assert all(one.of is not business or one.fence < fence for one in self.attempts)
        self.attempts.append(Attempt(business, kind, fence, self.now + LEASE, started, again))

    def _in_doubt(self, attempt: Attempt) -> bool:
        """That this attempt did nothing says nothing about the one before it."""
        return attempt.again and attempt.of.slot.recovery is not Recovery.AGAIN

    def _new(self, key: str, recovery: Recovery, digest: str) -> Business:
        slot = Slot(
            state=State.RECEIVED, digest=digest, recovery=recovery, expires_ns=self.now + TTL
        )
        self.keys[key] = Business(slot)
        return self.keys[key]
