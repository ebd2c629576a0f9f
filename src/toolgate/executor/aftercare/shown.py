"""A call on record as doors show it: plain JSON, without secrets."""

from typing import Any

import orjson

from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.queue.queue import Depth, Kept, Stage
from toolgate.spec.effect import Effect

NO_SUCH_DEAD = (
    "`toolgate queue dead --tenant NAME` lists those that can be tried again. What is listed "
    "without a tenant is a message that nobody could read, and no call: whoever sent it can send "
    "it anew, and `toolgate queue discard` takes it off the list."
)
NOT_DEAD = "`toolgate queue dead` lists those that are, each with its tenant."
# By its answer alone: what a worker elsewhere read is on record a moment later.
_STATES = {"success": State.SUCCEEDED, "unknown": State.UNKNOWN}


def summary(entry: Entry) -> dict[str, Any]:
    """One line of a list."""
    told: dict[str, Any] = {
        "call_id": entry.call_id,
        "tool": entry.tool,
        "effect": entry.effect.value,
        "state": entry.state.value,
        "agent": entry.agent,
        "user": entry.user,
        "started_ns": entry.started_ns,
        "ended_ns": entry.ended_ns or None,
        "duration_ms": entry.duration_ns / 1e6,
    }
    for name in ("turn_group", "chain", "again_of", "undo_of"):
        value = getattr(entry, name)
        if value:
            told[name] = value
    if entry.error_code:
        told["error"] = {"code": entry.error_code, "message": entry.error_message}
    if entry.state is State.WAITING:
        told["approval_id"] = entry.approval
    return told


def whole(entry: Entry) -> dict[str, Any]:
    """All that is on record of it: its arguments, its output, and how it would be taken back."""
    told = summary(entry) | {
        "tenant": entry.tenant,
        "persona": entry.persona,
        "session": entry.session,
        "fingerprint": entry.fingerprint,
        "decision": entry.decision,
        "recovery": entry.recovery.value,
        "args": _json(entry.args),
        "output": _json(entry.result),
    }
    if entry.approval:
        told["approval_id"] = entry.approval
    if entry.plan:
        told["undo"] = {"plan": _json(entry.plan), "until_ns": entry.undo_until_ns}
    return told


def queued(kept: Kept, entry: Entry | None, effect: Effect) -> dict[str, Any]:
    """A call that was queued: how it stands there, and what is on record of it elsewhere.

    `effect` is its tool's, for one that no worker has begun. One that another call answered for
    stands as that one does.
    """
    told = _unrecorded(kept, effect) if entry is None else whole(entry)
    if entry is not None and entry.call_id != kept.call_id:
        told |= {"call_id": kept.call_id, "answered_by": entry.call_id}
    if kept.stage is not Stage.DONE:
        told["state"] = (State.FAILED if kept.stage is Stage.DEAD else State.RECEIVED).value
    if kept.output:
        told["output"] = _json(kept.output)
    told["queue"] = {
        "stage": kept.stage.value,
        "attempts": kept.attempts,
        "queued_ns": kept.queued_ns,
        "expires_ns": kept.expires_ns,
    }
    return told


def depth(found: Depth) -> dict[str, Any]:
    """How much there is to do."""
    return {
        "waiting": found.waiting,
        "sent": found.sent,
        "taken": found.taken,
        "dead": found.dead,
        "oldest_ns": found.oldest_ns or None,
        "unheld_ns": found.unheld_ns or None,
    }


def dead(kept: Kept) -> dict[str, Any]:
    """One line of a list of those that no worker could run."""
    return {
        "call_id": kept.call_id,
        "tenant": kept.tenant,
        "tool": kept.tool,
        "agent": kept.agent,
        "user": kept.user,
        "attempts": kept.attempts,
        "queued_ns": kept.queued_ns,
        "ended_ns": kept.ended_ns,
        "why": kept.why,
    }


def _unrecorded(kept: Kept, effect: Effect) -> dict[str, Any]:
    output: dict[str, Any] = _json(kept.output) or {}
    told: dict[str, Any] = {
        "call_id": kept.call_id,
        "tool": kept.tool,
        "effect": effect.value,
        "state": _STATES.get(output.get("status", ""), State.FAILED).value,
        "agent": kept.agent,
        "user": kept.user,
        "started_ns": kept.queued_ns,
        "ended_ns": kept.ended_ns or None,
        "duration_ms": 0.0,
        "tenant": kept.tenant,
        "persona": "",
        "session": "",
        "fingerprint": "",
        "decision": "",
        "recovery": "",
        "args": None,
        "output": None,
    }
    failure = output.get("error")
    if failure:
        told["error"] = {"code": failure["code"], "message": failure["message"]}
    return told


def _json(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
