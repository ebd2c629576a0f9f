"""The audit log: a row for each change, execution and refusal, in the transaction that makes it.

A row bears the digest of its own content; `store.seals` chains the digests.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
import orjson
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.gate.decision import Decision
from toolgate.ledger.entry import Entry
from toolgate.spec.document import sha256
from toolgate.store import records, tables
from toolgate.store.text import storable
from toolgate.tenancy import account
from toolgate.tenancy.audit import ENDED, PAGE, REFUSED, Actor, Record
from toolgate.tenancy.changes import Change, ExpireKey, RevokeKey

# The one form of a row's content: any JSON library can write it, floats as Python does.
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
_INSERT = records.audit_log.insert()
_Row = dict[str, Any]


class _Caller(msgspec.Struct):
    agent: str = ""
    user: str = ""


class _Asked(msgspec.Struct):
    caller: _Caller = msgspec.field(default_factory=_Caller)


_asked = msgspec.json.Decoder(_Asked).decode


def digest_of(row: Mapping[str, Any]) -> str:
    """SHA-256 over what a row says. Its id is bound by its seal: it is not known before."""
    said = [
        row["at_ns"],
        row["tenant_id"],
        row["who"],
        row["why"],
        row["change"],
        row["details"],
    ]
    return hashlib.sha256(_canonical(said).encode("utf-8", "surrogatepass")).hexdigest()


def write(connection: Connection, changes: Iterable[Change], actor: Actor) -> None:
    """Note each change under the actor's name."""
    now = clock.unix_ns()
    rows = [
        _row(
            now,
            _whose(connection, change),
            account.name_of(change),
            account.details_of(change),
            who=actor.who,
            why=actor.why,
        )
        for change in changes
    ]
    put(connection, rows)


def put(connection: Connection, rows: list[_Row]) -> None:
    """Write rows that were made here."""
    if rows:
        connection.execute(_INSERT, rows)


def execution_row(
    entry: Entry, at_ns: int, *, change: str = ENDED, who: str = "", why: str = ""
) -> _Row:
    """How a side effect ended, or moved on afterwards: a row to be written with it."""
    return execution(entry, at_ns, change=change, who=who, why=why)[0]


def execution(
    entry: Entry, at_ns: int, *, change: str = ENDED, who: str = "", why: str = ""
) -> tuple[_Row, bytes]:
    """The same, with its details as they are written."""
    details = {
        "agent": storable(entry.agent),
        "approval": entry.approval,
        "args_hash": entry.args_hash,
        "call_id": entry.call_id,
        "decision": entry.decision,
        "duration_ns": entry.duration_ns,
        # Their texts: the attribute that holds them takes three times as long.
        "effect": str(entry.effect),
        "error_code": storable(entry.error_code),
        "fence": entry.fence,
        "kept_hash": kept_hash(
            entry.args,
            entry.plan,
            entry.task,
            storable(f"{entry.fingerprint} {entry.digest} {entry.scope}").encode(),
        ),
        "result_hash": sha256(entry.result) if entry.result else "",
        "session": storable(entry.session),
        "state": str(entry.state),
        "tool": storable(entry.tool),
        "turn_group": storable(entry.turn_group),
        "user": storable(entry.user),
    }
    if entry.again_of:
        details["again_of"] = entry.again_of
    if entry.undo_of:
        details["undo_of"] = entry.undo_of
    row: _Row = {
        "at_ns": at_ns,
        "who": storable(who or entry.agent or entry.user),
        "why": storable(why),
        "tenant_id": storable(entry.tenant),
        "change": change,
        "details": details,
    }
    # Texts and whole numbers only: orjson writes them as `digest_of` does, several times as fast.
    written = orjson.dumps(details, option=orjson.OPT_SORT_KEYS)
    said = orjson.dumps([at_ns, row["tenant_id"], row["who"], row["why"], change])
    row["digest"] = hashlib.sha256(b"%b,%b]" % (said[:-1], written)).hexdigest()
    return row, written


def kept_hash(*kept: bytes) -> str:
    """Of a call's arguments, plan and caller as its row has them, and of what it is bound to: by
    them it is run, answered or undone.
    """
    return sha256(b"\0".join(kept))


def shown_hash(*shown: str) -> str:
    """Of what a person was shown before they agreed, as the approval's row has it."""
    return sha256("\0".join(shown).encode())


class Named(Protocol):
    """A call, as far as the audit names it."""

    @property
    def call_id(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def tenant(self) -> str: ...


def note(
    connection: Connection,
    entry: Named,
    at_ns: int,
    *,
    change: str,
    details: Mapping[str, str],
    who: str,
    why: str,
) -> None:
    """What an operator did about a call that stays as it is on record."""
    said = {"call_id": entry.call_id, "tool": storable(entry.tool), **details}
    tenant = storable(entry.tenant)
    put(connection, [_row(at_ns, tenant, change, said, who=storable(who), why=storable(why))])


def page_row(page: Mapping[str, Any]) -> _Row:
    """A page of calls that changed nothing, or were refused: named by its content."""
    details = {
        "calls": page["calls"],
        "first_call_id": page["first_call_id"],
        "sha256": hashlib.sha256(page["entries"]).hexdigest(),
    }
    return _row(page["written_ns"], page["tenant_id"], PAGE, details)


def house_row(change: str, details: _Row, *, who: str, why: str) -> _Row:
    """What an operator did about the house itself; it is no tenant's."""
    return _row(clock.unix_ns(), "", change, details, who=storable(who), why=storable(why))


def refusal_row(decision: Decision) -> _Row:
    """A decision to refuse, when it is first put on record."""
    caller = _caller_of(decision.input)
    details = {
        "action": decision.action.value,
        "agent": storable(caller.agent),
        "decision": decision.id,
        "phase": decision.phase,
        "policy_revision": decision.policy_revision,
        "reason": storable(decision.reason),
        "rule": storable(decision.rule),
        "tool": storable(decision.tool),
        "user": storable(caller.user),
    }
    who = details["agent"] or details["user"]
    return _row(decision.at_ns, storable(decision.tenant), REFUSED, details, who=who)


def read(
    connection: Connection, *, tenant: str | None, limit: int, before: int | None
) -> list[Record]:
    """The newest first."""
    column = records.audit_log.c
    asked = sa.select(
        column.id,
        column.at_ns,
        column.who,
        column.why,
        column.tenant_id,
        column.change,
        column.details,
    )
    if tenant is not None:
        asked = asked.where(column.tenant_id == tenant)
    if before is not None:
        asked = asked.where(column.id < before)
    return [
        Record(
            id=id_,
            at_ns=at_ns,
            who=who,
            why=why,
            tenant=whose,
            change=change,
            details=MappingProxyType(details),
        )
        for id_, at_ns, who, why, whose, change, details in connection.execute(
            asked.order_by(column.id.desc()).limit(limit)
        )
    ]


def _row(
    at_ns: int, tenant: str, change: str, details: _Row, *, who: str = "", why: str = ""
) -> _Row:
    row: _Row = {
        "at_ns": at_ns,
        "who": who,
        "why": why,
        "tenant_id": tenant,
        "change": change,
        "details": details,
    }
    # As it will be read back: a tuple is a list then.
    row["details"] = json.loads(json.dumps(details))
    return row | {"digest": digest_of(row)}


def _caller_of(asked: bytes) -> _Caller:
    try:
        return _asked(asked).caller
    except msgspec.DecodeError:
        # Of what was too large to keep, nobody is named.
        return _Caller()


def _whose(connection: Connection, change: Change) -> str:
    if not isinstance(change, (RevokeKey, ExpireKey)):
        return account.tenant_of(change)
    # It names only the key; whoever looks at the tenant's log wants to see it.
    key = tables.api_keys.c
    return connection.execute(sa.select(key.tenant_id).where(key.id == change.id)).scalar_one()
