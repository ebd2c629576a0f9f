"""The call that takes another one back, as it was planned when the effect was."""

from typing import Any, NamedTuple

import orjson

from toolgate.executor.aftercare import recalled
from toolgate.executor.aftercare.probing import SpecOf
from toolgate.executor.recording.entries import plan_of
from toolgate.ledger.entry import Entry
from toolgate.spec.redactor import PLAIN


class Plan(NamedTuple):
    """The call that takes one back."""

    tool: str
    args: dict[str, Any]
    # The one that the effect was done under, where it was not the first.
    fence: int = 0


def planned(entry: Entry, spec_of: SpecOf) -> Plan | str:
    """The compensation of this entry, or what is wrong with it."""
    raw = entry.plan
    if not raw:
        # Settled, so that nobody had the result at hand: the arguments may do.
        spec = spec_of(entry.tool)
        if spec is None or spec.fingerprint != entry.fingerprint:
            return "It has no plan, and its tool is not what it was."
        raw = plan_of(spec, recalled.known_args(entry), {}, PLAIN)
    try:
        plan = orjson.loads(raw)
        if "problem" in plan:
            return f"It cannot be planned: {plan['problem']}."
        return Plan(plan["tool"], plan["args"], plan.get("fence", 0))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "Its plan cannot be read: it is damaged, or a newer version wrote it."
