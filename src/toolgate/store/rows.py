"""An entry as a row of `tool_execution_log`, and back. A row that cannot be read is no entry."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from toolgate.errors import StoreMismatch
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Recovery
from toolgate.ledger.state import State
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind, Effect
from toolgate.store.records import tool_execution_log
from toolgate.store.text import storable_row

_log = logging.getLogger("toolgate.store")
COLUMNS = tuple(column.name for column in tool_execution_log.columns)
SUCCESS: dict[State, bool | None] = dict.fromkeys(State) | {
    State.SUCCEEDED: True,
    State.FAILED: False,
}
_STATES = {state.value: state for state in State}
_RECOVERIES = {recovery.value: recovery for recovery in Recovery}
_EFFECTS = {effect.value: effect for effect in Effect}
_KINDS = {kind.value: kind for kind in CallerKind}
# Looks at every byte and keeps none.
_check = msgspec.json.Decoder(msgspec.Raw).decode
charges_of = msgspec.json.Decoder(tuple[tuple[str, int], ...]).decode
_encode = msgspec.json.Encoder().encode


def row_of(entry: Entry) -> tuple[Any, ...]:
    """The values of its columns, in their order."""
    state = entry.state
    row = (
        entry.call_id,
        entry.tool,
        entry.fingerprint,
        # Their texts: the attribute that holds them takes three times as long.
        str(entry.effect),
        entry.tenant,
        entry.agent,
        entry.user,
        entry.persona,
        entry.session,
        entry.turn_group,
        str(entry.caller_kind),
        entry.args_hash or sha256(entry.args),
        str(state),
        SUCCESS[state],
        entry.duration_ns / 1e6,
        entry.error_code,
        entry.error_message,
        entry.started_ns,
        entry.decision,
        entry.chain,
        entry.chain_index,
        entry.planned.decode(),
        entry.turn_id,
        entry.scope,
        entry.key or None,
        entry.digest,
        str(entry.recovery),
        entry.owner,
        entry.fence,
        entry.lease_ns,
        entry.expires_ns,
        entry.tried,
        entry.permanent,
        entry.approval,
        text_of(entry.args),
        text_of(entry.result),
        text_of(entry.plan),
        entry.undo_until_ns,
        charges_text(entry) if entry.charges else "",
        entry.again_of,
        entry.undo_of,
        entry.wanted_by,
        entry.ended_ns,
        entry.task.decode(),
    )
    return storable_row(row)


def entry_of(row: Sequence[Any]) -> Entry:
    """The entry; `StoreMismatch` where the row says what this version cannot understand."""
    try:
        return _read(row)
    except (KeyError, TypeError, ValueError, msgspec.MsgspecError):
        raise StoreMismatch(
            f"What is on record of call {row[0]} cannot be read: it is damaged, or a newer "
            "version wrote it. Nothing ran."
        ) from None


def entries_of(rows: Iterable[Sequence[Any]]) -> list[Entry]:
    """Those that can be read: one that cannot keeps none of the others from being seen."""
    found: list[Entry] = []
    for row in rows:
        try:
            found.append(entry_of(row))
        except StoreMismatch as error:
            _log.error("%s", error.message)
    return found


def text_of(raw: bytes) -> str | None:
    """JSON as a column holds it."""
    return raw.decode("utf-8", "backslashreplace") if raw else None


def charges_text(entry: Entry) -> str:
    """What it cost, as a column holds it."""
    return _encode(entry.charges).decode() if entry.charges else ""


def _read(row: Sequence[Any]) -> Entry:
    (
        call_id, tool, fingerprint, effect, tenant, agent, user, persona, session, turn_group,
        caller_kind, args_hash, state, _success, duration_ms, error_code, error_message,
        created_ns, decision, chain, chain_index, planned, turn_id, scope, key, digest, recovery,
        owner, fence, lease_ns, expires_ns, tried, permanent, approval, args, result, plan,
        undo_until_ns, charges, again_of, undo_of, wanted_by, ended_ns, task,
    ) = row  # fmt: skip
    return Entry(
        call_id=call_id,
        tool=tool,
        fingerprint=fingerprint,
        effect=_EFFECTS[effect],
        tenant=tenant,
        agent=agent,
        user=user,
        persona=persona,
        session=session,
        turn_group=turn_group,
        caller_kind=_KINDS[caller_kind],
        args=_json(args),
        started_ns=created_ns,
        state=_STATES[state],
        duration_ns=round(duration_ms * 1e6),
        error_code=error_code,
        error_message=error_message,
        args_hash=args_hash,
        decision=decision,
        chain=chain,
        chain_index=chain_index,
        planned=_json(planned),
        turn_id=turn_id,
        scope=scope,
        key=key or "",
        digest=digest,
        recovery=_RECOVERIES[recovery],
        owner=owner,
        fence=fence,
        lease_ns=lease_ns,
        expires_ns=expires_ns,
        tried=bool(tried),
        permanent=bool(permanent),
        approval=approval,
        result=_json(result),
        plan=_json(plan),
        undo_until_ns=undo_until_ns,
        charges=charges_of(charges) if charges else (),
        again_of=again_of,
        undo_of=undo_of,
        wanted_by=wanted_by,
        ended_ns=ended_ns,
        task=_json(task),
    )


def _json(text: str | None) -> bytes:
    if not text:
        return b""
    raw = text.encode()
    _check(raw)
    return raw
