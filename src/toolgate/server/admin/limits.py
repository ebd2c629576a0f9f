"""`/v1/admin/`: budgets, rate limits, and what is used of them."""

from typing import Any, Literal

import msgspec

from toolgate.server.admin.desk import Desk, Signed, SignedOfTenant, SomeOfTenant, noted
from toolgate.spec.cost import plain
from toolgate.spec.tool import RateLimit
from toolgate.tenancy.world import RateKey


class Tenant(Signed):
    """A tenant's plan, if it is to have one of its own; null leaves it to the settings."""

    plan: str | msgspec.UnsetType | None = msgspec.UNSET


class Budget(SignedOfTenant, kw_only=True):
    """The most of a metric in a month; null, or "none", takes the budget away."""

    metric: str
    most: float | Literal["none", "null"] | None


class Rate(SignedOfTenant, kw_only=True):
    """A rate such as `600/minute`; null, or "none", takes the limit away."""

    limit: str | None
    persona: str = ""
    tool: str = ""


class SomeUsage(SomeOfTenant):
    """Of which month, such as `2026-11`."""

    month: str = ""


async def put_tenant(desk: Desk, given: Tenant) -> Any:
    """`PUT tenants/{id}` `{plan?}`."""
    [name] = desk.names
    if given.plan is msgspec.UNSET:
        await desk.tenancy.add_tenant(name)
        return {"id": name}
    await desk.tenancy.set_plan(name, given.plan)
    return {"id": name, "plan": given.plan}


async def list_budgets(desk: Desk, _: SomeOfTenant) -> Any:
    """`GET budgets?tenant=&limit=&cursor=`: plans, and the budgets that operators gave."""
    shown, following = desk.page(_tenants(desk), lambda item: item[0])
    return {
        "tenants": {
            name: {
                "plan": tenant.plan or None,
                "budgets": {metric: plain(most) for metric, most in tenant.budgets.items()},
            }
            for name, tenant in shown
        },
        "next": following,
    }


async def put_budget(desk: Desk, given: Budget) -> Any:
    """`PUT budgets` `{tenant, metric, most}`; `most: null` takes it away."""
    tenant, before = desk.need_tenant(), desk.gate.tenancy.world
    most = None if isinstance(given.most, str) else given.most
    await desk.tenancy.set_budget(tenant, given.metric, most)
    answer = {"tenant": tenant, "metric": given.metric, "most": most}
    return noted(answer, desk.notes(before, tenant))


async def list_limits(desk: Desk, _: SomeOfTenant) -> Any:
    """`GET limits?tenant=&limit=&cursor=`: the rate limits that operators gave."""
    everyone = desk.gate.tenancy.world.everyone.rates
    rows = [_row("", key, limit) for key, limit in sorted(everyone.items())]
    for name, tenant in _tenants(desk):
        rows += [_row(name, key, limit) for key, limit in sorted(tenant.rates.items())]
    shown, following = desk.page(rows, lambda row: (row["tenant"], row["persona"], row["tool"]))
    return {"limits": shown, "next": following}


async def put_limit(desk: Desk, given: Rate) -> Any:
    """`PUT limits` `{limit, tenant?, persona?, tool?}`; `limit: null` takes it away."""
    tenant = desk.tenant
    # As the command line takes it away.
    limit = None if given.limit in {"none", "null"} else given.limit
    if tenant and limit is None:
        await desk.need_on_record(tenant)
    await desk.tenancy.set_rate_limit(limit, tenant=tenant, persona=given.persona, tool=given.tool)
    return {
        "tenant": tenant,
        "persona": given.persona,
        "tool": given.tool,
        "limit": limit,
    }


async def list_usage(desk: Desk, given: SomeUsage) -> Any:
    """`GET usage?tenant=&month=&limit=&cursor=`: used and limit of each metric."""
    lines = await desk.gate.usage.lines(tenant=desk.tenant, month=given.month)
    shown, following = desk.page(lines, lambda line: (line.tenant, line.metric))
    return {"usage": [msgspec.to_builtins(line) for line in shown], "next": following}


def _tenants(desk: Desk) -> list[tuple[str, Any]]:
    own = desk.tenant
    tenants = desk.gate.tenancy.world.tenants
    return [(name, tenants[name]) for name in sorted(tenants) if not own or name == own]


def _row(tenant: str, key: RateKey, limit: RateLimit) -> dict[str, Any]:
    persona, tool = key
    return {
        "tenant": tenant,
        "persona": persona,
        "tool": tool,
        "calls": limit.calls,
        "per": limit.per,
    }
