"""Puts a decision on record: the question as it was asked, and what came of it."""

import hashlib
from typing import Any

import orjson

from toolgate import clock
from toolgate.caller import Action
from toolgate.errors import InvalidArguments
from toolgate.gate.decision import Decision, Decisions, Verdict
from toolgate.gate.policy import ARGS
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.spec.tool import ToolSpec

# So much of the arguments is kept with a decision; of more, only how much there was.
_MOST_ARGS = 16_384
_MOST_INPUT = 65_536
_EXACTLY = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class Recorder:
    """Names each decision by its content, so that the same one is kept once."""

    def __init__(self, decisions: Decisions, redactor: Redactor = PLAIN) -> None:
        self._decisions = decisions
        self._redactor = redactor

    def note(
        self,
        action: Action,
        asked: dict[str, Any],
        verdict: Verdict,
        *,
        revision: str,
        observed: bool = False,
    ) -> str:
        """Keep it soon; returns its id."""
        if ARGS in asked:
            asked = asked | {ARGS: self._redactor.value(asked[ARGS])}
        if len(args := written(asked.get(ARGS, {}))) > _MOST_ARGS:
            asked = _without(asked, ARGS) | {"args_omitted": len(args)}
        asked = _bounded(asked)
        content = [asked, verdict.allowed, observed, verdict.rule, verdict.reason, revision]
        digest = hashlib.blake2b(written(content), digest_size=12).hexdigest()
        decision = Decision(
            id=f"dec_{digest}",
            at_ns=clock.unix_ns(),
            tenant=asked["caller"]["tenant"],
            tool=asked["tool"]["name"],
            action=action,
            allowed=verdict.allowed or observed,
            observed=observed,
            phase=verdict.phase,
            rule=verdict.rule,
            reason=verdict.reason,
            policy_revision=revision,
            input=written(asked),
        )
        self._decisions.note(decision)
        return decision.id


def exactly(value: object) -> bytes:
    """The same bytes for the same value, and for no other. `TypeError` where it is not JSON."""
    return orjson.dumps(value, option=_EXACTLY)


def stated(spec: ToolSpec, args: dict[str, Any]) -> bytes:
    """The arguments as a policy sees them; what no policy can be told is no argument."""
    try:
        return exactly(args)
    except TypeError as error:
        raise InvalidArguments(spec.name, [("", f"not JSON ({error})")]) from None


def written(value: object) -> bytes:
    """The same bytes for the same value. Arguments are checked against their schema later."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=_told)


def _bounded(asked: dict[str, Any]) -> dict[str, Any]:
    """Whoever calls chooses some of what is kept: not without an end."""
    size = len(written(asked))
    if size <= _MOST_INPUT:
        return asked
    kept = {name: asked[name] for name in ("action", "tool")}
    return {**kept, "caller": {"tenant": asked["caller"]["tenant"]}, "input_omitted": size}


def _without(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}


def _told(value: object) -> str:
    return type(value).__name__
