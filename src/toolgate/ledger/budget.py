"""Budgets: what a tenant may use of a metric in a month. Pure arithmetic, and the port.

Amounts are whole millionths. A process draws a part of what is left, a lease, and serves calls from
it in memory. What it says about a lease is how it stands, never what was added: said twice, it is
the same.
"""

import calendar
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from toolgate.spec.cost import UNIT

# Near the end of a budget it is drawn call by call; far from it, so much at a time.
_SHARE = 64
_LARGEST = 1_000 * UNIT
_SECOND = 1_000_000_000
# Counted up to here, and no further: more than any budget holds, and so far below a database's
# largest whole number that two of them, and what a call costs, still fit it.
FULL = 2 * 10**18


def period_of(at_ns: int) -> str:
    """The calendar month in UTC, as `2026-11`."""
    return datetime.fromtimestamp(at_ns // _SECOND, UTC).strftime("%Y-%m")


def end_of(period: str) -> int:
    """When the next month begins."""
    year, month = map(int, period.split("-"))
    year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return calendar.timegm((year, month, 1, 0, 0, 0)) * _SECOND


def bounded(amount: int) -> int:
    """The amount as it is written and told: what is `FULL` stands for at least so much."""
    return min(amount, FULL)


def added(spent: int, amount: int) -> int:
    """What is spent with so much more, or less. What is full stays so: nobody knows by how much."""
    return FULL if spent >= FULL else min(spent + amount, FULL)


def granted(needs: Sequence[int], remaining: int) -> int:
    """How much is drawn: what those who wait need, in their order as far as it reaches; and for
    those that come next, as long as nobody else would be short of it.
    """
    total = 0
    for need in needs:
        if total + need <= remaining:
            total += need
    if not total or total != sum(needs):
        return total
    # As many times what they need: a part of a call helps nobody.
    return max(min(remaining // _SHARE, _LARGEST) // total, 1) * total


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """How a lease stands, as its holder says: all of it, so that saying it twice does no harm.

    `left` is drawn and not in `behind`, which pure calls have spent. What side effects spend, the
    journal writes to the lease together with their end.
    """

    id: str
    tenant: str
    metric: str
    period: str
    left: int
    behind: int


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """What came of drawing: how much, and how the budget stands for everyone."""

    granted: int
    used: int
    held: int


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a month's budget is used, as a person writes it."""

    metric: str
    month: str
    used: int | float
    limit: int | float

    @property
    def is_full(self) -> bool:
        """Whether a call that costs anything of it is refused."""
        return self.used >= self.limit


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What is used of a metric, and what is held for calls that run or are about to."""

    used: int
    held: int


class Budgets(Protocol):
    """Where budgets are kept. Leases run by the store's clock; no amount grows beyond `FULL`."""

    @property
    def lease_ns(self) -> int:
        """How long a lease holds without a word of its holder."""
        ...

    @property
    def holder(self) -> str:
        """A name that no other process has."""
        ...

    async def draw(self, balance: Balance, needs: Sequence[int], most: int) -> Drawn:
        """Put the lease on record as it stands, and add to it what `granted` says."""
        ...

    async def write(self, balances: Sequence[Balance], *, over: bool = False) -> Mapping[str, int]:
        """Put leases on record as they stand, and prolong them; or end them, if they are `over`.

        What side effects have spent of each, by its id.
        """
        ...

    async def fold(self) -> int:
        """Add up leases that ended so long ago that nobody speaks of them; how many there were."""
        ...

    async def usage(self, period: str, tenant: str = "") -> Mapping[tuple[str, str], Used]:
        """By tenant and metric: of one tenant, or of all."""
        ...
