"""Decisions in a table, each once, written behind: a call never waits for them, nor fails."""

import logging
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.caller import Action
from toolgate.gate.decision import Decision
from toolgate.store import audit
from toolgate.store.behind import Behind
from toolgate.store.database import HOUSE, Database
from toolgate.store.prune import Prune
from toolgate.store.tables import decisions as table
from toolgate.store.text import storable
from toolgate.store.upsert import upsert

_log = logging.getLogger("toolgate.decisions")
# For so long the same decision is not written again.
_RECENT_NS = 60 * 1_000_000_000
_MOST_RECENT = 50_000
_KEEP_NS = 30 * 24 * 3_600 * 1_000_000_000
# In bytes. Refusals find room for as long again: they are what somebody will ask about.
_MOST = 32 * 1024 * 1024
_MOST_WITH_REFUSALS = 2 * _MOST
# What a decision weighs beside its input.
_REST = 1_024
_NAMED = 500


class TableDecisions:
    """The port for decisions over a database. They are kept for 30 days after the last time."""

    def __init__(self, database: Database) -> None:
        # How many are not on record because too many waited.
        self.dropped = 0
        self._warned = False
        self._database = database
        self._recent: dict[str, int] = {}
        self._behind = Behind[Decision]("decisions", self._write)
        self._prune = Prune(database, table.c.last_ns, _KEEP_NS)

    def start(self) -> None:
        """Begin to write behind."""
        self._behind.start()
        self._prune.soon()

    async def close(self) -> None:
        """Write what waits, then stop."""
        try:
            await self._behind.close()
        finally:
            await self._prune.close()

    def note(self, decision: Decision) -> None:
        """Keep it until the next write. When too much waits, it is dropped and counted."""
        recent = self._recent
        last_ns = recent.get(decision.id)
        if last_ns is not None and 0 <= decision.at_ns - last_ns < _RECENT_NS:
            return
        behind = self._behind
        weight = len(decision.input) + _REST
        most = _MOST if decision.allowed else _MOST_WITH_REFUSALS
        if behind.closing or behind.load + weight > most:
            self._drop()
            return
        if len(recent) >= _MOST_RECENT:
            recent.clear()
        recent[decision.id] = decision.at_ns
        behind.add(decision, weight)

    async def drain(self) -> None:
        """Write what waits, now."""
        await self._behind.drain()

    async def settle(self) -> None:
        """Write what waits, and let the deleting that was begun come to its end."""
        await self.drain()
        await self._prune.close()

    async def since(
        self,
        at_ns: int,
        *,
        tenant: str = "",
        after: tuple[int, str] | None = None,
        most: int | None = None,
    ) -> Sequence[Decision]:
        """Those that were made, or made again, since then, oldest first."""
        await self.drain()
        question = sa.select(table).where(table.c.last_ns >= at_ns)
        if tenant:
            question = question.where(table.c.tenant_id == storable(tenant))
        if after is not None:
            last_ns, id_ = after
            same = (table.c.last_ns == last_ns) & (table.c.id > id_)
            question = question.where(
                table.c.last_ns >= last_ns, (table.c.last_ns > last_ns) | same
            )
        question = question.order_by(table.c.last_ns, table.c.id).limit(most)

        def work(connection: Connection) -> list[Decision]:
            return [_decision(row) for row in connection.execute(question).mappings()]

        return await self._database.read(work, tenant=tenant or HOUSE)

    async def _write(self, batch: list[Decision]) -> None:
        newest = {decision.id: decision for decision in batch}
        # In one order on every node: two that hold each other's rows would wait for ever.
        rows = [_row(newest[id_]) for id_ in sorted(newest)]
        refused = [newest[row["id"]] for row in rows if not row["allowed"]]

        def work(connection: Connection) -> None:
            audit.put(connection, _first_refused(connection, refused))
            upsert(connection, table, rows, change=("last_ns",))

        await self._database.write(work, tenant=HOUSE)
        self._warned = False
        self._prune.soon()

    def _drop(self) -> None:
        self.dropped += 1
        if not self._warned:
            self._warned = True
            _log.warning("too many decisions wait for the store; new ones are not on record")


def _first_refused(connection: Connection, refused: list[Decision]) -> list[dict[str, Any]]:
    """The audit's rows of those that were never on record before."""
    known: set[str] = set()
    for start in range(0, len(refused), _NAMED):
        ids = [decision.id for decision in refused[start : start + _NAMED]]
        known.update(connection.execute(sa.select(table.c.id).where(table.c.id.in_(ids))).scalars())
    return [audit.refusal_row(one) for one in refused if one.id not in known]


def _row(decision: Decision) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": decision.id,
        "first_ns": decision.first_ns or decision.at_ns,
        "last_ns": decision.at_ns,
        "tenant_id": decision.tenant,
        "tool_name": decision.tool,
        "action": decision.action.value,
        "allowed": decision.allowed,
        "observed": decision.observed,
        "phase": decision.phase,
        "rule": decision.rule,
        "reason": decision.reason,
        "policy_revision": decision.policy_revision,
        "input": decision.input.decode("utf-8", "backslashreplace"),
    }
    return {name: storable(part) if isinstance(part, str) else part for name, part in row.items()}


def _decision(row: sa.RowMapping) -> Decision:
    return Decision(
        id=row["id"],
        at_ns=row["last_ns"],
        first_ns=row["first_ns"],
        tenant=row["tenant_id"],
        tool=row["tool_name"],
        action=Action(row["action"]),
        allowed=row["allowed"],
        observed=row["observed"],
        phase=row["phase"],
        rule=row["rule"],
        reason=row["reason"],
        policy_revision=row["policy_revision"],
        input=row["input"].encode(),
    )
