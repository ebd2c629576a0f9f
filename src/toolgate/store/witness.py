"""What the audit says of calls and approvals, held against their rows."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.ledger.approval import Standing
from toolgate.ledger.state import OPEN, State
from toolgate.spec.document import sha256
from toolgate.store.audit import kept_hash, shown_hash
from toolgate.store.records import approvals
from toolgate.store.records import tool_execution_log as log
from toolgate.tenancy.audit import ENDED

# The records that tell a call's state; what is begun for the first time has none yet.
_MOVES = frozenset(
    {ENDED, "call.settled", "call.taken", "call.started", "call.undo", "call.released"}
)
_ASKED = "approval."
_REQUESTED, _DECIDED = "requested", frozenset({"approved", "denied"})
_UNKNOWN = State.UNKNOWN.value
_UNTOLD = frozenset({one.value for one in OPEN} | {State.WAITING.value})
# What may still become another, with what its next attempt brings.
_UNDECIDED = _UNTOLD | {State.RELEASED.value}
# What an approval may be after the last that was said of it.
_AFTER = {
    _REQUESTED: {Standing.WAITING.value},
    "approved": {Standing.APPROVED.value, Standing.USED.value},
    "denied": {Standing.DENIED.value},
    "expired": {Standing.EXPIRED.value},
}
_CLOSED = {"denied": State.FAILED.value, "expired": State.EXPIRED.value}
# What a call's records say that its row says too, beside its state and what was kept of it.
_COLUMNS: dict[str, sa.Column[Any]] = {
    "tool": log.c.tool_name,
    "agent": log.c.agent_id,
    "user": log.c.user_id,
    "effect": log.c.effect,
    "args_hash": log.c.args_hash,
    "approval": log.c.approval_id,
    "decision": log.c.decision_id,
    "session": log.c.session_id,
    "turn_group": log.c.turn_group,
    "again_of": log.c.again_of,
    "undo_of": log.c.undo_of,
}
_KEPT: tuple[sa.Column[Any], ...] = (
    *(log.c.result, log.c.args, log.c.plan, log.c.task),
    *(log.c.fingerprint, log.c.digest, log.c.once_scope),
)
_NAMED = (*_COLUMNS, "result_hash", "kept_hash")
# The same of an approval's records.
_BOUND = ("tool", "agent", "user", "hash", "call_id", "kind", "policy_revision", "shown_hash")
_AT_ONCE = 500
_Row = Mapping[str, Any]


class _Call(NamedTuple):
    """How a call stands by its last record, and what else it said, as one number."""

    state: str
    said: int


class _Asked(NamedTuple):
    """What was last said of an approval, who decided it and why, and what it was bound to."""

    last: str
    who: str
    why: str
    bound: int


class Witness:
    """Hears a tenant's records in their order, then looks at its rows."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._calls: dict[str, _Call] = {}
        # Calls of which two records say different things, though they had ended by the first.
        self._changed: list[str] = []
        self._asked: dict[str, _Asked] = {}
        self._rebound: list[str] = []
        # Calls that nobody began, by what became of their approval.
        self._closed: dict[str, str] = {}

    def hear(self, record: _Row) -> None:
        """The next record; its details can be anything."""
        change, details = record["change"], record["details"]
        if change in _MOVES:
            said = hash(tuple(str(details.get(name, "")) for name in _NAMED))
            call_id = str(details.get("call_id"))
            before = self._calls.get(call_id)
            # What a probe says of an unknown call comes with a result and a plan of its own.
            is_probed = before is not None and before.state == _UNKNOWN and change == ENDED
            is_over = before is not None and before.state not in _UNDECIDED and not is_probed
            if before is not None and is_over and before.said != said:
                # Else a record of later would stand for what was changed before it.
                self._changed.append(call_id)
            self._calls[call_id] = _Call(str(details.get("state")), said)
        elif change.startswith(_ASKED):
            self._hear_of_approval(change.removeprefix(_ASKED), record, details)

    def problems(self, connection: Connection) -> Iterator[str]:
        """Rows that say something else, are gone, or were never told of."""
        yield from self._of_calls(connection)
        yield from self._of_approvals(connection)

    def _hear_of_approval(self, last: str, record: _Row, details: _Row) -> None:
        id_ = str(details.get("approval"))
        before = self._asked.get(id_)
        who, why = (before.who, before.why) if before is not None else ("", "")
        if last in _DECIDED:
            who, why = record["who"], record["why"]
        bound = hash(tuple(str(details.get(name)) for name in _BOUND))
        if before is not None and before.bound != bound:
            self._rebound.append(id_)
        self._asked[id_] = _Asked(last, who, why, bound)
        if last in _CLOSED:
            self._closed[str(details.get("call_id"))] = _CLOSED[last]

    def _of_calls(self, connection: Connection) -> Iterator[str]:
        column = log.c
        asked = sa.select(column.call_id, column.state, *_KEPT, *_COLUMNS.values())
        asked = asked.where(column.tenant_id == self._tenant)
        found = connection.execute(asked.execution_options(yield_per=_AT_ONCE))
        missing = set(self._calls)
        for row in found.mappings():
            call_id, state = row["call_id"], row["state"]
            said = [row[one.name] for one in _COLUMNS.values()]
            hashes = _hashes(*(row[one.name] for one in _KEPT))
            told = self._calls.get(call_id)
            missing.discard(call_id)
            if told is None:
                if not (state in _UNTOLD or state == self._closed.get(call_id)):
                    yield f"call {call_id} is {state} in the ledger, and the audit never said so"
            elif told.state != state:
                yield f"call {call_id} is {state} in the ledger, and {told.state} in the audit"
            elif told.said != hash((*said, *hashes)):
                yield f"call {call_id} was changed in the ledger: the audit says something else"
        for call_id in missing:
            yield f"call {call_id} is in the audit, and gone from the ledger"
        for call_id in self._changed:
            yield f"call {call_id} was changed in the ledger between two records of the audit"

    def _of_approvals(self, connection: Connection) -> Iterator[str]:
        column = approvals.c
        bound = (
            *(column.tool_name, column.agent_id, column.user_id, column.hash, column.call_id),
            *(column.kind, column.policy_revision),
        )
        shown = (column.args, column.prompt, column.fingerprint)
        asked = sa.select(column.id, column.state, column.decided_by, column.reason, *shown, *bound)
        missing = set(self._asked)
        found: Any = connection.execute(
            asked.where(column.tenant_id == self._tenant).execution_options(yield_per=_AT_ONCE)
        )
        for row in cast("Iterable[tuple[Any, ...]]", found):
            id_, state, who, why, args, prompt, fingerprint, *said = row
            told = self._asked.get(id_)
            missing.discard(id_)
            if told is None:
                yield f"approval {id_} is {state}, and the audit never heard of it"
            elif state not in _AFTER.get(told.last, ()):
                yield f"approval {id_} is {state}, and {told.last} in the audit"
            elif (who, why) != (told.who, told.why):
                yield f"approval {id_} was decided by another, or for another reason, in the audit"
            elif told.bound != hash((*said, shown_hash(args, prompt, fingerprint))):
                yield f"approval {id_} was changed: the audit says something else"
        for id_ in missing:
            yield f"approval {id_} is in the audit, and gone"
        for id_ in self._rebound:
            yield f"approval {id_} was changed between two records of the audit"


def _hashes(
    result: str | None, args: str | None, plan: str | None, task: str, *bound: str
) -> tuple[str, str]:
    """Of a row, what its records have as `result_hash` and `kept_hash`."""
    kept = kept_hash(*((part or "").encode() for part in (args, plan, task, " ".join(bound))))
    return sha256(result.encode()) if result else "", kept
