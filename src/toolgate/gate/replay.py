"""Decisions on record, asked again of another policy: which calls would it decide otherwise."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

import msgspec
import orjson

from toolgate.caller import Action
from toolgate.gate.decision import Decision
from toolgate.gate.policy import PER_CALL, Policy

# What refused them is asked before any policy is.
_EARLIER = frozenset({"registry", "capsule", "relations"})


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that the other policy makes otherwise."""

    decision: Decision
    allowed: bool
    reasons: tuple[str, ...] = ()


class Untold(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that cannot be asked again: the policy reads what was not recorded."""

    decision: Decision
    missing: tuple[str, ...]


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    asked: int
    flips: tuple[Flip, ...]
    untold: tuple[Untold, ...]


class Replayed(Protocol):
    """Asks the policy of these files, with what is stored; without any, that of the settings."""

    async def __call__(
        self,
        decisions: Collection[Decision],
        files: Mapping[str, str] | None,
        stored: Mapping[str, str],
    ) -> Replay: ...


async def replay(decisions: Iterable[Decision], policy: Policy) -> Replay:
    """Ask each question again, as it was put then."""
    flips: list[Flip] = []
    untold: list[Untold] = []
    asked = 0
    for decision in decisions:
        if not decision.allowed and not _is_policys(decision):
            continue
        document = orjson.loads(decision.input)
        missing = _missing(document, policy, decision.action)
        if missing:
            untold.append(Untold(decision=decision, missing=missing))
            continue
        asked += 1
        allowed = await policy.allows(document)
        # What only observing let pass was a no.
        if allowed is not (decision.allowed and not decision.observed):
            reasons = () if allowed else await policy.reasons(document)
            flips.append(Flip(decision=decision, allowed=allowed, reasons=reasons))
    return Replay(asked=asked, flips=tuple(flips), untold=tuple(untold))


def _is_policys(decision: Decision) -> bool:
    """Layers and personas are no part of a Rego policy: their refusals stay."""
    return decision.phase not in _EARLIER and decision.rule == "rego"


def _missing(document: dict[str, Any], policy: Policy, action: Action) -> tuple[str, ...]:
    if "input_omitted" in document:
        return ("input",)
    if action is not Action.REQUEST:
        return ()
    return tuple(sorted(part for part in policy.reads & PER_CALL if part not in document))
