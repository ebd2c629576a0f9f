"""Budgets in memory, with the rules of those in tables; everything is gone when it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolgate import clock
from toolgate.ledger.budget import Balance, Drawn, Used, added, bounded, granted
from toolgate.ledger.owner import Owner

_KEEP_NS = 25 * 3_600 * 1_000_000_000


@dataclass
class _Lease:
    """What its holder said last, what side effects spent of it, and until when it holds."""

    balance: Balance
    granted: int
    charged: int
    lease_ns: int

    @property
    def spent(self) -> int:
        return bounded(self.charged + self.balance.behind)

    def held(self, now_ns: int) -> int:
        return max(self.granted - self.charged, 0) if self.lease_ns > now_ns else 0


class MemoryBudgets:
    """The budgets port over dictionaries. `charge` is what a journal does with a call's end."""

    def __init__(
        self, owner: Owner | None = None, now_ns: Callable[[], int] = clock.unix_ns
    ) -> None:
        owner = owner or Owner()
        self.lease_ns = owner.lease_ns
        self.holder = owner.name
        self._now_ns = now_ns
        self._leases: dict[str, _Lease] = {}
        self._over: dict[tuple[str, str, str], int] = {}

    def charge(self, charges: Sequence[tuple[str, int]]) -> None:
        """A side effect has ended that cost something."""
        for id_, amount in charges:
            if id_ in self._leases:
                lease = self._leases[id_]
                lease.charged = added(lease.charged, amount)

    async def draw(self, balance: Balance, needs: Sequence[int], most: int) -> Drawn:
        """Put the lease on record as it stands, and add to it."""
        now = self._now_ns()
        lease = self._save(balance, now + self.lease_ns)
        key = (balance.tenant, balance.metric, balance.period)
        used, held = self._used(key), self._held(key, now)
        amount = granted(needs, max(most - used - held, 0))
        lease.granted = bounded(lease.granted + amount)
        return Drawn(granted=amount, used=used, held=held)

    async def write(self, balances: Sequence[Balance], *, over: bool = False) -> Mapping[str, int]:
        """Put leases on record as they stand."""
        now = self._now_ns()
        until = now if over else now + self.lease_ns
        return {one.id: self._save(one, until).charged for one in balances}

    async def fold(self) -> int:
        """Add up what ended long ago."""
        before = self._now_ns() - _KEEP_NS
        old = [id_ for id_, lease in self._leases.items() if lease.lease_ns < before]
        for id_ in old:
            lease = self._leases.pop(id_)
            key = (lease.balance.tenant, lease.balance.metric, lease.balance.period)
            self._over[key] = added(self._over.get(key, 0), lease.spent)
        return len(old)

    async def usage(self, period: str, tenant: str = "") -> Mapping[tuple[str, str], Used]:
        """By tenant and metric."""
        keys = {*self._over}
        keys |= {
            (one.balance.tenant, one.balance.metric, one.balance.period) for one in self._all()
        }
        now = self._now_ns()
        return {
            key[:2]: Used(used=self._used(key), held=self._held(key, now))
            for key in keys
            if key[2] == period and (not tenant or key[0] == tenant)
        }

    def _save(self, balance: Balance, lease_ns: int) -> _Lease:
        charged = self._leases[balance.id].charged if balance.id in self._leases else 0
        lease = _Lease(balance, bounded(balance.left), charged, lease_ns)
        self._leases[balance.id] = lease
        return lease

    def _used(self, key: tuple[str, str, str]) -> int:
        return bounded(self._over.get(key, 0) + sum(one.spent for one in self._of(key)))

    def _held(self, key: tuple[str, str, str], now_ns: int) -> int:
        return bounded(sum(one.held(now_ns) for one in self._of(key)))

    def _all(self) -> list[_Lease]:
        return list(self._leases.values())

    def _of(self, key: tuple[str, str, str]) -> list[_Lease]:
        return [
            one
            for one in self._all()
            if (one.balance.tenant, one.balance.metric, one.balance.period) == key
        ]
