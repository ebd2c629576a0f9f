"""Plans, budgets and rate limits in their tables: put there, and read for the world."""

from collections import defaultdict
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.spec.tool import RateLimit
from toolgate.store import tables
from toolgate.store.records import rate_limits, tenant_budgets
from toolgate.store.upsert import upsert
from toolgate.tenancy.changes import SetBudget, SetPlan, SetRateLimit
from toolgate.tenancy.world import RateKey


def set_plan(change: SetPlan, connection: Connection) -> None:
    """Of a tenant that is on record."""
    tenants = tables.tenants
    connection.execute(
        tenants.update().where(tenants.c.id == change.tenant).values(plan=change.plan)
    )


def set_budget(change: SetBudget, connection: Connection) -> None:
    """The most of a metric, or none any more."""
    column = tenant_budgets.c
    if change.most is None:
        connection.execute(
            tenant_budgets.delete().where(
                column.tenant_id == change.tenant, column.metric == change.metric
            )
        )
        return
    row = {"tenant_id": change.tenant, "metric": change.metric, "most": change.most}
    upsert(connection, tenant_budgets, [row], change=("most",))


def set_rate_limit(change: SetRateLimit, connection: Connection) -> None:
    """A rate, or none any more."""
    column = rate_limits.c
    if change.limit is None:
        connection.execute(
            rate_limits.delete().where(
                column.tenant_id == change.tenant,
                column.persona_id == change.persona,
                column.tool_name == change.tool,
            )
        )
        return
    row = {
        "tenant_id": change.tenant,
        "persona_id": change.persona,
        "tool_name": change.tool,
        "calls": change.limit.calls,
        "per": change.limit.per,
        "updated_at": clock.utc_now(),
    }
    upsert(connection, rate_limits, [row], change=("calls", "per", "updated_at"))


def read_budgets(
    connection: Connection, tenants: Iterable[str] | None
) -> dict[str, dict[str, int]]:
    """The most of each metric, by tenant: of these, or of all."""
    column = tenant_budgets.c
    asked = sa.select(column.tenant_id, column.metric, column.most).order_by(column.metric)
    if tenants is not None:
        asked = asked.where(column.tenant_id.in_(tenants))
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for tenant, metric, most in connection.execute(asked):
        found[tenant][metric] = most
    return found


def read_rates(
    connection: Connection, tenants: Iterable[str] | None
) -> dict[str, dict[RateKey, RateLimit]]:
    """Rates by tenant; those for each tenant stand under the empty name."""
    column = rate_limits.c
    asked = sa.select(
        column.tenant_id, column.persona_id, column.tool_name, column.calls, column.per
    ).order_by(column.persona_id, column.tool_name)
    if tenants is not None:
        asked = asked.where(column.tenant_id.in_(tenants))
    found: dict[str, dict[RateKey, RateLimit]] = defaultdict(dict)
    for tenant, persona, tool, calls, per in connection.execute(asked):
        found[tenant][persona, tool] = RateLimit(calls=calls, per=per)
    return found
