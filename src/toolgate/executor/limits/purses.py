"""The purses of this process: filled from the store when they are empty, and kept on record."""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from toolgate import clock
from toolgate.errors import BudgetExceeded, StoreError
from toolgate.ledger.budget import FULL, Budgets, Drawn, end_of
from toolgate.ledger.purse import Purse
from toolgate.spec.cost import plain

_log = logging.getLogger("toolgate.budget")
# How often what was spent is written, and what nobody took is given back.
_EVERY = 0.5
# A purse that nobody used for so long is put away.
_FORGET_NS = 600 * 1_000_000_000
_FOLD_NS = 3_600 * 1_000_000_000
_SECOND = 1_000_000_000
# Where the store takes so many in a row not even one by one, it is away, and no purse's fault.
_AWAY = 2
_Key = tuple[str, str, str]


class _Kept:
    """A purse, who waits for it, and what the keeper saw of it the last time."""

    def __init__(self, purse: Purse, now_ns: int) -> None:
        self.purse = purse
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.drawing: asyncio.Task[None] | None = None
        self.moves = -1
        self.moved_ns = now_ns
        self.renewed_ns = now_ns
        # How often it could not be written, since it last could.
        self.failures = 0


_Missed = list[tuple[_Kept, Exception]]


class Purses:
    """One a tenant, metric and month. Those who find one empty draw together."""

    def __init__(
        self,
        budgets: Budgets,
        *,
        every: float = _EVERY,
        now_ns: Callable[[], int] = clock.monotonic_ns,
        unix_ns: Callable[[], int] = clock.unix_ns,
    ) -> None:
        self._budgets = budgets
        self._every = every
        self._now_ns = now_ns
        self._unix_ns = unix_ns
        self._kept: dict[_Key, _Kept] = {}
        # Put away, and perhaps still to be written.
        self._gone: list[_Kept] = []
        self._numbers = itertools.count(1)
        self._keeping: asyncio.Task[None] | None = None
        self._folded_ns = now_ns()

    def start(self) -> None:
        """Begin to write behind."""
        self._keeping = asyncio.create_task(self._keep(), name="toolgate-budget")

    async def close(self) -> None:
        """Put all that was spent on record, and give back what was not."""
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping
        for kept in self._kept.values():
            kept.purse.closed = True
        self._gone += self._kept.values()
        self._kept = {}
        _warn(await self._written(self._gone, over=True))

    def purse(self, tenant: str, metric: str, period: str, most: int | None) -> Purse:
        """The purse, with the budget as it is now."""
        key = (tenant, metric, period)
        kept = self._kept.get(key)
        if kept is None:
            # In the order in which they were made: whoever writes several does it in that order.
            id_ = f"{self._budgets.holder}-{next(self._numbers):08d}"
            kept = self._kept[key] = _Kept(Purse(id_, *key, most), self._now_ns())
        kept.purse.limit(most)
        return kept.purse

    async def take(self, purse: Purse, amount: int) -> None:
        """Hold so much for a call, or `BudgetExceeded`; drawn from the store where need be."""
        if purse.take(amount, self._now_ns()):
            return
        key = (purse.tenant, purse.metric, purse.period)
        kept = self._kept.setdefault(key, _Kept(purse, self._now_ns()))
        kept.purse.closed = False
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kept.waiting.append((amount, given))
        if kept.drawing is None:
            kept.drawing = asyncio.create_task(self._draw(kept), name="toolgate-draw")
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled() and given.exception() is None:
                purse.give_back(amount)
            raise

    async def flush(self) -> Mapping[str, Exception]:
        """Write what was spent, and give back what nobody took since the last time.

        The tenants of whom not all could be written, and why.
        """
        now = self._now_ns()
        due: list[_Kept] = []
        for key, kept in list(self._kept.items()):
            purse = kept.purse
            if kept.drawing is not None:
                continue
            idle = purse.moves == kept.moves
            if not idle:
                kept.moves, kept.moved_ns = purse.moves, now
            if idle and purse.available > 0 and purse.most is not None:
                purse.let_go()
                due.append(kept)
            elif idle and purse.is_quiet and now - kept.moved_ns > _FORGET_NS:
                purse.closed = True
                self._gone.append(self._kept.pop(key))
            elif purse.behind != purse.written or self._is_ending(kept, now):
                due.append(kept)
        missed = await self._written(due) + await self._put_away()
        _warn(missed)
        if now - self._folded_ns > _FOLD_NS:
            self._folded_ns = now
            await self._budgets.fold()
        return {one.purse.tenant: error for one, error in missed}

    def _is_ending(self, kept: _Kept, now_ns: int) -> bool:
        holds = kept.purse.most is not None and (
            not kept.purse.is_quiet or kept.purse.available > 0
        )
        return holds and now_ns - kept.renewed_ns > self._budgets.lease_ns // 3

    async def _put_away(self) -> _Missed:
        gone, self._gone = self._gone, []
        try:
            missed = await self._written(gone, over=True)
        except BaseException:
            self._gone += gone
            raise
        self._gone += [one for one, _error in missed]
        return missed

    async def _written(self, kept: Sequence[_Kept], *, over: bool = False) -> _Missed:
        """Those that could not be, and why. One of them does not keep the others from it."""
        together = [one for one in kept if not one.failures]
        alone = sorted((one for one in kept if one.failures), key=lambda one: one.failures)
        if len(together) > 1:
            try:
                await self._write(together, over=over)
            except Exception as error:  # noqa: BLE001  whose fault it is shows when each is alone
                _log.debug("purses are written one by one (%s)", type(error).__name__)
            else:
                together = []
        return await self._written_alone([*together, *alone], over=over)

    async def _written_alone(self, kept: Sequence[_Kept], *, over: bool) -> _Missed:
        missed: _Missed = []
        in_a_row = 0
        for number, one in enumerate(kept, 1):
            try:
                await self._write([one], over=over)
            except Exception as error:  # noqa: BLE001  whatever it is, the next write may succeed
                one.failures += 1
                missed.append((one, error))
                in_a_row = in_a_row + 1 if isinstance(error, StoreError) else 0
                if in_a_row == _AWAY:
                    return missed + [(rest, error) for rest in kept[number:]]
            else:
                in_a_row = 0
        return missed

    async def _write(self, kept: Sequence[_Kept], *, over: bool) -> None:
        now = self._now_ns()
        before = [(one, one.purse.moves, one.purse.behind, one.purse.balance(now)) for one in kept]
        spent = await self._budgets.write([balance for *_, balance in before], over=over)
        for one, moves, behind, _balance in before:
            one.failures = 0
            one.renewed_ns = now
            one.purse.renewed(now + self._budgets.lease_ns)
            one.purse.written = behind
            if moves == one.purse.moves and one.purse.is_quiet:
                one.purse.on_record(spent.get(one.purse.id, 0))

    async def _draw(self, kept: _Kept) -> None:
        """One question for all who wait, and again for those who came meanwhile."""
        purse = kept.purse
        try:
            # The others that come in the same moment.
            await asyncio.sleep(0)
            while kept.waiting:
                waiting, kept.waiting = kept.waiting, deque()
                needs = [amount for amount, given in waiting if not given.done()]
                now = self._now_ns()
                purse.let_go()
                try:
                    drawn = await self._budgets.draw(purse.balance(now), needs, purse.most or 0)
                except Exception as error:  # noqa: BLE001  whoever waits must hear it
                    _tell(waiting, error)
                    continue
                purse.drawn(drawn.granted, now + self._budgets.lease_ns)
                kept.renewed_ns = now
                for amount, given in waiting:
                    if given.done():
                        continue
                    if purse.take(amount, self._now_ns()):
                        given.set_result(None)
                    else:
                        given.set_exception(self._exceeded(purse, drawn, amount))
        finally:
            kept.drawing = None

    def _exceeded(self, purse: Purse, drawn: Drawn, amount: int) -> BudgetExceeded:
        return exceeded(purse, drawn, amount, self._unix_ns())

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.flush()
            except Exception as error:  # noqa: BLE001  whatever it is, the next write may succeed
                _log.warning("what was spent could not be written (%s)", type(error).__name__)


def exceeded(purse: Purse, drawn: Drawn, amount: int, now_ns: int) -> BudgetExceeded:
    """In words for a model: what is used up, and when there is more."""
    most = purse.most or 0
    numbers = {
        "metric": purse.metric,
        "limit": plain(most),
        "used": plain(drawn.used),
        "period": purse.period,
    }
    used = f"{'at least ' if drawn.used >= FULL else ''}{plain(drawn.used):,}"
    if drawn.used + amount <= most:
        return BudgetExceeded(
            f"The rest of this month's budget of {purse.metric} is held for calls that are "
            f"running: {used} of {plain(most):,} are used. Nothing ran: try again "
            "in a moment.",
            **numbers,
            held=plain(drawn.held),
            retry_after=1,
        )
    wait = max(-(-(end_of(purse.period) - now_ns) // _SECOND), 1)
    return BudgetExceeded(
        f"This month's budget of {purse.metric} does not hold another {plain(amount):,}: "
        f"{used} of {plain(most):,} are used. Nothing ran, and trying again does "
        "not help before the next month: do without, or ask an operator for more.",
        **numbers,
        retry_after=wait,
    )


def _warn(missed: _Missed) -> None:
    if missed:
        kinds = ", ".join(sorted({type(error).__name__ for _one, error in missed}))
        _log.warning("what was spent could not be written (%s)", kinds)


def _tell(waiting: deque[tuple[int, "asyncio.Future[None]"]], error: Exception) -> None:
    for _amount, given in waiting:
        if not given.done():
            given.set_exception(error)
