"""Budgets in tables: `budget_usage` holds what is over, `budget_leases` what processes hold.

A lease has two rows. One holds what was drawn, and what side effects spent of it, which the journal
adds in the transaction of their end. The other, whose id ends in `+`, holds what its process says
that pure calls spent. So each number has one writer, and drawn twice is not spent twice.
"""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.ledger.budget import FULL, Balance, Drawn, Used, added, bounded, granted
from toolgate.ledger.owner import Owner
from toolgate.store.database import HOUSE, Database
from toolgate.store.moment import now_ns
from toolgate.store.records import budget_leases, budget_usage
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import charges_of
from toolgate.store.upsert import upsert

_BEHIND = "+"
# No call takes longer than a day, so nobody charges a lease that ended before.
_KEEP_NS = 25 * 3_600 * 1_000_000_000
# But whoever settles an unknown call, however late, gives back what it cost; so many are looked at.
_MOST_UNKNOWN = 5_000
_AT_ONCE = 500
# Many amounts that fit a whole number make a sum that does not: SQLite refuses it. Two sums do fit,
# of the high digits and of the low.
_HIGH = 10**9
_Sum = sa.ColumnElement[int]
_lease = budget_leases.c
_total = budget_usage.c


class TableBudgets:
    """The budgets port over a database. `owner` is the journal's."""

    def __init__(self, database: Database, owner: Owner) -> None:
        self._database = database
        self.lease_ns = owner.lease_ns
        self.holder = owner.name

    async def draw(self, balance: Balance, needs: Sequence[int], most: int) -> Drawn:
        """One at a time for each tenant, metric and month: nobody is granted what another was."""

        def work(connection: Connection) -> Drawn:
            key = {
                "tenant_id": balance.tenant,
                "metric": balance.metric,
                "period": balance.period,
            }
            upsert(connection, budget_usage, [{**key, "used": 0}])
            before = connection.execute(
                sa.select(_total.used)
                .where(*(budget_usage.c[name] == value for name, value in key.items()))
                .with_for_update()
            ).scalar_one()
            now = now_ns(connection)
            self._save(connection, [balance], now + self.lease_ns)
            sums = connection.execute(
                sa.select(*_sums(now)).where(
                    *(budget_leases.c[name] == value for name, value in key.items())
                )
            ).one()
            spent, held = _whole(*sums)
            used = added(before, spent)
            amount = granted(needs, max(most - used - held, 0))
            if amount:
                more = bounded(balance.left + amount)
                connection.execute(
                    budget_leases.update().where(_lease.id == balance.id).values(granted=more)
                )
            return Drawn(granted=amount, used=used, held=held)

        return await self._database.write(work, tenant=balance.tenant)

    async def write(self, balances: Sequence[Balance], *, over: bool = False) -> Mapping[str, int]:
        """All in one transaction, in the order of their ids: nobody waits for each other."""
        ordered = sorted(balances, key=lambda one: one.id)

        def work(connection: Connection) -> dict[str, int]:
            now = now_ns(connection)
            self._save(connection, ordered, now if over else now + self.lease_ns)
            ids = [one.id for one in ordered]
            rows = connection.execute(sa.select(_lease.id, _lease.spent).where(_lease.id.in_(ids)))
            return {id_: spent for id_, spent in rows}  # noqa: C416  a Row is no pair

        return await self._database.write(work, tenant=HOUSE)

    async def fold(self) -> int:
        """A few at a time."""

        def work(connection: Connection) -> int:
            old = (
                sa.select(_lease.id)
                .where(
                    _lease.lease_ns < now_ns(connection) - _KEEP_NS,
                    _lease.id.not_in(sorted(_of_unknown(connection))),
                )
                .order_by(_lease.id)
                .limit(_AT_ONCE)
                .with_for_update(skip_locked=True)
            )
            rows = connection.execute(
                budget_leases.delete()
                .where(_lease.id.in_(old))
                .returning(_lease.tenant_id, _lease.metric, _lease.period, _lease.spent)
            ).all()
            for tenant, metric, period, spent in sorted(tuple(row) for row in rows):
                _add(connection, tenant, metric, period, spent)
            return len(rows)

        return await self._database.write(work, tenant=HOUSE)

    async def usage(self, period: str, tenant: str = "") -> Mapping[tuple[str, str], Used]:
        """What is over and what is held, as of now."""

        def work(connection: Connection) -> dict[tuple[str, str], Used]:
            now = now_ns(connection)
            found: dict[tuple[str, str], Used] = {}
            sums = (
                sa.select(_lease.tenant_id, _lease.metric, *_sums(now))
                .where(_lease.period == period, *_whose(_lease.tenant_id, tenant))
                .group_by(_lease.tenant_id, _lease.metric)
            )
            for who, metric, *parts in connection.execute(sums).all():
                spent, held = _whole(*parts)
                found[who, metric] = Used(used=spent, held=held)
            totals = sa.select(_total.tenant_id, _total.metric, _total.used).where(
                _total.period == period, *_whose(_total.tenant_id, tenant)
            )
            for who, metric, used in connection.execute(totals):
                held = found.get((who, metric), Used(used=0, held=0))
                found[who, metric] = Used(used=added(used, held.used), held=held.held)
            return found

        return await self._database.read(work, tenant=tenant or HOUSE)

    def _save(self, connection: Connection, balances: Sequence[Balance], lease_ns: int) -> None:
        drawn = [_row(one, self.holder, lease_ns, left=one.left) for one in balances]
        upsert(connection, budget_leases, drawn, change=("granted", "lease_ns"))
        behind = [
            _row(one, self.holder, lease_ns, behind=one.behind) for one in balances if one.behind
        ]
        upsert(connection, budget_leases, behind, change=("spent", "lease_ns"))


def charge(connection: Connection, charges: Sequence[tuple[str, int]]) -> None:
    """A side effect has ended, as far as anybody knows, that cost something."""
    for lease, amount in charges:
        connection.execute(
            budget_leases.update()
            .where(_lease.id == lease)
            .values(spent=_added(_lease.spent, amount))
        )


def _of_unknown(connection: Connection) -> set[str]:
    """The leases that calls were charged to whose end nobody knows, the latest of those first."""
    charged = connection.execute(
        sa.select(log.c.charges)
        # In the words of the index.
        .where(sa.text("state = 'unknown'"), log.c.charges != "")
        .order_by(log.c.ended_ns.desc())
        .limit(_MOST_UNKNOWN)
    ).scalars()
    return {lease for text in charged for lease, _amount in charges_of(text)}


def _row(
    one: Balance, owner: str, lease_ns: int, *, left: int = 0, behind: int | None = None
) -> dict[str, object]:
    return {
        "id": one.id if behind is None else one.id + _BEHIND,
        "tenant_id": one.tenant,
        "metric": one.metric,
        "period": one.period,
        "owner": owner,
        "granted": bounded(left),
        "spent": bounded(behind or 0),
        "lease_ns": lease_ns,
    }


def _added(spent: sa.Column[int], amount: int) -> sa.ColumnElement[int]:
    """As `added`, where the row is."""
    more = spent + amount
    return sa.case((spent >= FULL, FULL), (more > FULL, FULL), else_=more)


def _sums(now: int) -> tuple[_Sum, _Sum, _Sum, _Sum]:
    """Spent, and held beside it, for `_whole`: of a lease that has ended nothing is held."""
    unspent = sa.case(
        (
            sa.and_(_lease.lease_ns > now, _lease.granted > _lease.spent),
            _lease.granted - _lease.spent,
        ),
        else_=0,
    )
    return (*_digits(_lease.spent), *_digits(unspent))


def _digits(amount: sa.ColumnElement[int]) -> tuple[_Sum, _Sum]:
    return sa.func.sum(amount // _HIGH), sa.func.sum(amount % _HIGH)


def _whole(*parts: int | None) -> tuple[int, int]:
    """What is spent, and what is held, of the sums; there are none where there are no rows."""
    spent_high, spent_low, held_high, held_low = (int(part or 0) for part in parts)
    return bounded(spent_high * _HIGH + spent_low), bounded(held_high * _HIGH + held_low)


def _whose(column: sa.Column[str], tenant: str) -> tuple[sa.ColumnElement[bool], ...]:
    return (column == tenant,) if tenant else ()


def _add(connection: Connection, tenant: str, metric: str, period: str, spent: int) -> None:
    key = {"tenant_id": tenant, "metric": metric, "period": period}
    upsert(connection, budget_usage, [{**key, "used": 0}])
    connection.execute(
        budget_usage.update()
        .where(*(budget_usage.c[name] == value for name, value in key.items()))
        .values(used=_added(_total.used, spent))
    )
