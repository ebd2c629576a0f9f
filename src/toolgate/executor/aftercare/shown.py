"""A call on record as doors show it: plain JSON, without secrets."""

from typing import Any

import orjson

from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State


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


def _json(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
