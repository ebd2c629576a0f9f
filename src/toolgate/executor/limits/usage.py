"""What tenants have used this month, beside what they may: for those who run them."""

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from toolgate import clock
from toolgate.errors import InvalidRequest, StoreError, StoreUnavailable
from toolgate.executor.limits.budget import most_of
from toolgate.executor.limits.purses import Purses
from toolgate.ledger.budget import FULL, Budgets, Spent, Used, period_of
from toolgate.spec.cost import CALLS, plain
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.world import World

_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])\Z")
_NOTHING = Used(used=0, held=0)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one tenant. Without a `limit` it is only counted; `held` is for what runs.

    `at_least`: more than `used` is not counted, and may be used.
    """

    tenant: str
    month: str
    metric: str
    used: int | float
    held: int | float
    limit: int | float | None
    plan: str
    at_least: bool = False


class Usage:
    """Reads what is on record, after what this process has spent is."""

    def __init__(
        self, budgets: Budgets, purses: Purses, world: Callable[[], World], *, default_plan: str
    ) -> None:
        self._budgets = budgets
        self._purses = purses
        self._world = world
        self._plan = default_plan

    async def lines(self, *, tenant: str = "", month: str = "") -> Sequence[Line]:
        """Of one tenant, or of all; of this month, or of another (`2026-11`), in UTC."""
        if month and not _MONTH.match(month):
            raise InvalidRequest(f"{month[:40]!r} is no month; write one such as 2026-11.")
        month = month or period_of(clock.unix_ns())
        _check(await self._purses.flush(), tenant)
        found = await self._budgets.usage(month, tenant)
        world = self._world()
        listed = {*found}
        for name in [tenant] if tenant else world.tenants:
            listed |= {(name, CALLS), *((name, metric) for metric in world.tenant(name).budgets)}
        return [
            self._line(world, name, metric, month, found.get((name, metric), _NOTHING))
            for name, metric in sorted(listed)
        ]

    async def spent(self, tenant: str, spec: ToolSpec) -> tuple[Spent, ...]:
        """How much is used of the budgets that a call of this tool costs something of."""
        metrics = {CALLS, *spec.costs}
        return tuple(
            Spent(metric=line.metric, month=line.month, used=line.used, limit=line.limit)
            for line in await self.lines(tenant=tenant)
            if line.metric in metrics and line.limit is not None
        )

    def _line(self, world: World, name: str, metric: str, month: str, used: Used) -> Line:
        part = world.tenant(name)
        most = most_of(part, metric, self._plan)
        return Line(
            tenant=name,
            month=month,
            metric=metric,
            used=plain(used.used),
            held=plain(used.held),
            limit=None if most is None else plain(most),
            plan=part.plan or self._plan,
            at_least=used.used >= FULL,
        )


def _check(missed: Mapping[str, Exception], tenant: str) -> None:
    """What this process has spent must be on record: of the tenant, or as far as the store goes."""
    concerned = [missed[tenant]] if tenant in missed else [] if tenant else [*missed.values()]
    for error in concerned:
        if isinstance(error, StoreError):
            raise error
    if tenant and concerned:
        raise StoreUnavailable(
            f"What {tenant!r} has spent cannot be written ({type(concerned[0]).__name__}), so "
            "nobody can say how much it is. The log of the server says more."
        )
