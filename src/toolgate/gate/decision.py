"""A decision is a value with a reason, and stays on record."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from toolgate.caller import Action
from toolgate.ledger.budget import Spent


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one phase says, by which rule, and the smallest change that would make it a yes."""

    phase: str
    allowed: bool
    rule: str
    reason: str
    remedy: str = ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Every phase's verdict on one tool for one caller; for operators, not for callers.

    `observed`: the policy refuses, but only observes, so that the call passes. `needs_a_person`:
    each call waits for somebody's approval. `budgets`: what the tenant has left is no part of the
    decision, and refuses a call all the same where nothing is.
    """

    tool: str
    action: Action = Action.REQUEST
    allowed: bool
    observed: bool = False
    needs_a_person: bool = False
    verdicts: tuple[Verdict, ...]
    budgets: tuple[Spent, ...] = ()

    @property
    def deciding(self) -> Verdict:
        """The first refusal, or the last yes."""
        return next((one for one in self.verdicts if not one.allowed), self.verdicts[-1])

    @property
    def remedies(self) -> tuple[str, ...]:
        """The smallest changes that would allow it, in the order of the phases."""
        return tuple(one.remedy for one in self.verdicts if not one.allowed and one.remedy)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about a call, as it is kept. `input` is what a policy is asked, as JSON.

    The same question with the same answer has the same id, so that it is kept once.
    """

    id: str
    at_ns: int
    tenant: str
    tool: str
    action: Action
    allowed: bool
    observed: bool = False
    phase: str
    rule: str
    reason: str
    policy_revision: str
    input: bytes
    # When it was first made; `at_ns` is the last time.
    first_ns: int = 0


class Decisions(Protocol):
    """Where decisions are kept."""

    def note(self, decision: Decision) -> None:
        """Write it soon, together with others. Once it was noted, the same id costs nothing."""
        ...

    async def since(
        self,
        at_ns: int,
        *,
        tenant: str = "",
        after: tuple[int, str] | None = None,
        most: int | None = None,
    ) -> Sequence[Decision]:
        """Those that were made, or made again, since then, oldest first.

        `after`: behind the one of this moment and id. `most`: so many of them.
        """
        ...


class Forgetful:
    """Keeps nothing."""

    def note(self, decision: Decision) -> None:
        """Nothing to do."""

    async def since(self, at_ns: int, **_: object) -> Sequence[Decision]:  # noqa: ARG002
        """Nothing was kept."""
        return ()
