"""What an operator says about how much: plans, budgets and rate limits."""

from toolgate.errors import InvalidRequest
from toolgate.identity import plain
from toolgate.spec import cost
from toolgate.spec.fields import rate_limit
from toolgate.spec.tool import RateLimit
from toolgate.tenancy import names
from toolgate.tenancy.changes import AddTenant, SetBudget, SetPlan, SetRateLimit
from toolgate.tenancy.hand import Hand
from toolgate.tenancy.plan import Plan

# Sums of it still fit a database's largest whole number.
_MOST = 10**18


class Limiting(Hand):
    """Plans, budgets and rate limits."""

    async def set_plan(self, tenant: str, plan: str | None) -> None:
        """A tenant's budget plan; `None` leaves it to the settings. A new tenant is recorded."""
        plain("tenant", tenant)
        if plan is not None and plan not in set(Plan):
            raise InvalidRequest(
                f"{str(plan)[:80]!r} is no plan; there are {', '.join(Plan)}. Nothing was changed."
                + names.nearest(str(plan), list(Plan))
            )
        await self._put(AddTenant(tenant), SetPlan(tenant, plan))

    async def set_budget(self, tenant: str, metric: str, most: float | None) -> None:
        """The most of a metric that a tenant may use in a month; `None` takes the budget away.

        Of `tool_calls` it takes the place of what the plan holds.
        """
        plain("tenant", tenant)
        if not cost.is_metric(metric):
            raise InvalidRequest(
                f"{str(metric)[:80]!r} cannot name a metric. Use 1 to 64 lower-case letters, "
                "digits and _, a letter first. Nothing was changed."
            )
        amount = None if most is None else _amount(most)
        await self._put(AddTenant(tenant), SetBudget(tenant, metric, amount))

    async def set_rate_limit(
        self,
        limit: RateLimit | str | None,
        *,
        tenant: str = "",
        persona: str = "",
        tool: str = "",
    ) -> None:
        """The most calls in a time, such as `600/minute`; `None` takes the limit away.

        Of a tenant as a whole, of a persona, of a tool, or of a persona with a tool. Without a
        tenant it holds in every one that has none of its own, for each by itself.
        """
        if tenant:
            plain("tenant", tenant)
        if persona:
            names.label("persona", persona)
        # A tool that is gone from the catalog can still leave a limit behind.
        if tool and limit is not None:
            self._tool(tool)
        try:
            kept = rate_limit(limit) if isinstance(limit, str) else limit
        except ValueError:
            raise InvalidRequest(
                f"{str(limit)[:40]!r} is no rate; write one such as 600/minute, or per second, "
                "hour or day. Nothing was changed."
            ) from None
        await self._put(SetRateLimit(tenant, persona, tool, kept))


def _amount(most: float) -> int:
    try:
        return cost.millionths(most, _MOST)
    except ValueError as error:
        raise InvalidRequest(f"The most of a budget {error}; nothing was changed.") from None
