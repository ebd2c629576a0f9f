"""Budgets: a call holds what it costs before it runs, and spends it, or gives it back.

What is refused, replayed or waits for a person costs nothing, nor does what says itself that it
did not happen. What has succeeded costs, and so does a side effect that began and did not say so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolgate import clock
from toolgate.asked import PLAINLY
from toolgate.call import Call, Charge, Output
from toolgate.crash import crash_here
from toolgate.errors import StoreError, StoreUnavailable
from toolgate.executor.aside import whole
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.limits.costs import Price, known, prices, real
from toolgate.executor.limits.purses import Purses
from toolgate.executor.outcome import has_begun, is_paid
from toolgate.executor.resilience.deadline import is_overdue
from toolgate.ledger.budget import end_of, period_of
from toolgate.ledger.purse import Purse
from toolgate.spec.cost import CALLS, UNIT
from toolgate.spec.effect import Effect
from toolgate.spec.shape import DECLARED
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.plan import calls_of
from toolgate.tenancy.world import Tenant, World

F = TypeVar("F", bound=Callable[..., Any])
_MOST_TENANTS = 10_000
_MOST_SPECS = 10_000


def budget_gate(*, metric: str, amount: float | str = 1) -> Callable[[F], F]:
    """A tool costs so much of a metric: a number, `$args.NAME` or `$result.NAME`.

    Stands above `@tool`: `@budget_gate(metric="money", amount="$args.amount")`. Every call costs
    one of `tool_calls`, so `budget_gate(metric="tool_calls")` adds nothing.
    """

    def mark(function: F) -> F:
        declared: dict[str, Any] = dict(getattr(function, DECLARED, {}))
        if metric != CALLS or amount != 1:
            declared["costs"] = {**declared.get("costs", {}), metric: amount}
        setattr(function, DECLARED, declared)
        return function

    return mark


def most_of(tenant: Tenant, metric: str, default_plan: str) -> int | None:
    """The most of a metric in a month, in millionths; `None` where there is no budget."""
    own = tenant.budgets.get(metric)
    if own is not None or metric != CALLS:
        return own
    return calls_of(tenant.plan or default_plan)


class _Account(NamedTuple):
    """A tenant in a month: its purse of calls, and what it rests on."""

    part: Tenant
    period: str
    ends_ns: int
    calls: Purse


class _Hold(NamedTuple):
    """What is held in one purse for one call."""

    purse: Purse
    amount: int
    price: Price
    # Where the journal writes what it cost.
    charge: Charge | None


class _Held:
    """All that one call holds."""

    def __init__(self, holds: list[_Hold], take: Callable[[], Awaitable[list[_Hold]]]) -> None:
        self._holds = holds
        self._take = take

    def charged(self, call: Call) -> Call:
        """The call, with what its end on record costs."""
        charges = tuple(one.charge for one in self._holds if one.charge is not None)
        waits = self if call.asked.wait_s else None
        if not charges and waits is None:
            return call
        return msgspec.structs.replace(call, charges=charges, hold=waits)

    def let_go(self) -> None:
        """Nobody waits for what a person may never agree to."""
        self.settle(spent=False)
        self._holds = []

    async def again(self, call: Call) -> Call:
        """Out of the purses as they are now."""
        self._holds = await self._take()
        return self.charged(call)

    def settle(self, *, spent: bool, name: str = "", data: Any = None) -> None:
        """What the journal writes is settled when that is written, and by what it says."""
        for one in self._holds:
            if one.charge is not None and one.charge.taken:
                continue
            if not spent:
                one.purse.give_back(one.amount)
                continue
            at = one.price.result if data is not None else ""
            amount = real(name, at, one.amount, data)
            if one.charge is not None:
                one.purse.spent_on_record(one.amount, amount)
            else:
                one.purse.spend(one.amount, amount)


class Budget(Extension):
    """Counts what every call costs, and refuses what a budget does not hold."""

    priority = 230

    def __init__(
        self,
        purses: Purses,
        world: Callable[[], World],
        *,
        default_plan: str,
        always_asks: bool = False,
        now_ns: Callable[[], int] = clock.monotonic_ns,
    ) -> None:
        """`always_asks`: a person agrees to every call, also to reads."""
        self._purses = purses
        self._world = world
        self._plan = default_plan
        self._always_asks = always_asks
        self._now_ns = now_ns
        self._seen: World | None = None
        self._accounts: dict[str, _Account] = {}
        self._prices: dict[str, tuple[ToolSpec, tuple[Price, ...]]] = {}

    def link(self, inner: Handler) -> Handler:
        """A read without costs of its own takes one call from its purse; others go a longer way."""
        accounts, world_now, now_ns = self._accounts, self._world, self._now_ns
        asks = self._always_asks
        counted, light, heavy = _counted(inner), _light(inner), self._heavy(inner)

        # Not a coroutine of its own: the one that is chosen waits for the tool.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            grant = call.grant
            spec = grant.spec
            account = accounts.get(grant.caller.tenant)
            if (
                account is None
                or world_now() is not self._seen
                or call.started_ns >= account.ends_ns
                or account.calls.closed
            ):
                account = self._account(grant.caller.tenant, call.started_ns)
            if (
                spec.costs
                or spec.effect is not Effect.PURE
                or asks
                or grant.needs_a_person
                or (call.asked is not PLAINLY and call.asked.wait_s)
            ):
                return heavy(call, account)
            purse = account.calls
            if purse.most is None:
                return counted(call, purse)
            return light(call, purse) if purse.take(UNIT, now_ns()) else heavy(call, account)

        return run

    def _heavy(self, inner: Handler) -> Callable[[Call, _Account], Coroutine[Any, Any, Output]]:
        async def run(call: Call, account: _Account) -> Output:
            held = _Held(await self._hold(call, account), partial(self._hold_again, call))
            crash_here("CP3")
            try:
                output = await inner(held.charged(call))
            except BaseException as error:
                held.settle(spent=_costs(call, error))
                raise
            spent = _ran(call, output, asked=self._always_asks or call.grant.needs_a_person)
            held.settle(spent=spent, name=call.grant.spec.name, data=whole(output))
            return output

        return run

    async def _hold_again(self, call: Call) -> list[_Hold]:
        return await self._hold(call, self._account(call.grant.caller.tenant, call.started_ns))

    async def _hold(self, call: Call, account: _Account) -> list[_Hold]:
        """All that it costs, or nothing of it."""
        spec, tenant = call.grant.spec, call.grant.caller.tenant
        wanted = [(account.calls, UNIT, Price(CALLS, fixed=UNIT))]
        for price in self._priced(spec):
            amount = known(call, price)
            most = most_of(account.part, price.metric, self._plan)
            purse = self._purses.purse(tenant, price.metric, account.period, most)
            wanted.append((purse, amount, price))
        holds: list[_Hold] = []
        try:
            for purse, amount, price in wanted:
                await self._purses.take(purse, amount)
                charge = None
                if spec.effect is not Effect.PURE and purse.most is not None:
                    paid = partial(purse.spent_on_record, amount)
                    charge = Charge(purse.id, amount, price.result, paid)
                holds.append(_Hold(purse, amount, price, charge))
        except BaseException as error:
            for one in holds:
                one.purse.give_back(one.amount)
            if is_overdue(error):
                raise StoreUnavailable(
                    f"The store did not say in time whether the budget holds {spec.name!r}, so "
                    "nothing ran. Try again when it is back."
                ) from None
            raise
        return holds

    def _account(self, tenant: str, started_ns: int) -> _Account:
        world = self._world()
        if world is not self._seen or len(self._accounts) >= _MOST_TENANTS:
            self._accounts.clear()
            self._seen = world
        part, period = world.tenant(tenant), period_of(started_ns)
        purse = self._purses.purse(tenant, CALLS, period, most_of(part, CALLS, self._plan))
        account = _Account(part, period, end_of(period), purse)
        self._accounts[tenant] = account
        return account

    def _priced(self, spec: ToolSpec) -> tuple[Price, ...]:
        if not spec.costs:
            return ()
        found = self._prices.get(spec.name)
        if found is None or found[0] is not spec:
            if len(self._prices) >= _MOST_SPECS:
                self._prices.clear()
            found = self._prices[spec.name] = (spec, prices(spec))
        return found[1]


def _counted(inner: Handler) -> Callable[[Call, Purse], Coroutine[Any, Any, Output]]:
    """Where there is no budget: one more, if it ran."""

    async def run(call: Call, purse: Purse) -> Output:
        try:
            output = await inner(call)
        except BaseException as error:
            if _costs(call, error):
                purse.spend(0, UNIT)
            raise
        if output.call_id == call.id:
            purse.behind += UNIT
            purse.moves += 1
        return output

    return run


def _light(inner: Handler) -> Callable[[Call, Purse], Coroutine[Any, Any, Output]]:
    """One call of the purse is held already."""

    async def run(call: Call, purse: Purse) -> Output:
        try:
            output = await inner(call)
        except BaseException as error:
            if _costs(call, error):
                purse.spend(UNIT, UNIT)
            else:
                purse.give_back(UNIT)
            raise
        if output.call_id == call.id:
            purse.spend(UNIT, UNIT)
        else:
            purse.give_back(UNIT)
        return output

    return run


def _costs(call: Call, error: BaseException) -> bool:
    """As it is on record."""
    if isinstance(error, StoreError):
        # It could not be put on record, so it was not begun.
        return False
    if isinstance(error, asyncio.CancelledError) and not has_begun(error, call.id):
        # Whoever went away did so before it came to its tool; of what is pure, before its end.
        return False
    return is_paid(call.grant.spec.effect, error)


def _ran(call: Call, output: Output, *, asked: bool) -> bool:
    """Whether the tool ran for this call, and not for an earlier one."""
    if output.call_id == call.id:
        return not output.cached
    # A key whose first call failed runs again under that call's id, and what a person agreed to
    # under the id that it waited by.
    may_differ = asked or call.grant.spec.effect is not Effect.PURE
    return may_differ and bool(output.call_id) and not output.cached
