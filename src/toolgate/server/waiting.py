"""Who waits for the end of a call: so many of a key, of a tenant, and of all. Each holds a
connection.
"""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from toolgate.errors import RateLimited
from toolgate.runtime import Runtime
from toolgate.tenancy.keys import Key

MOST_OF_KEY = 64
# However many keys it has, it leaves room for others.
MOST_OF_TENANT = 256
MOST = 512
_AGAIN_S = 5


class Waiting:
    """Those of one house, by their keys and their tenants."""

    def __init__(self) -> None:
        self._of_key: Counter[str] = Counter()
        self._of_tenant: Counter[str] = Counter()

    @contextmanager
    def one(self, key: Key) -> Generator[None]:
        """One more waits as long as this is open; `RateLimited` where there are too many."""
        if (
            self._of_key[key.id] >= MOST_OF_KEY
            or self._of_tenant[key.tenant] >= MOST_OF_TENANT
            or self._of_tenant.total() >= MOST
        ):
            raise RateLimited(
                f"Too many wait here for the end of a call: {MOST_OF_KEY} of a key, "
                f"{MOST_OF_TENANT} of a tenant, and {MOST} of all. Ask without 'wait_s', or again "
                "when some of them are answered.",
                retry_after=_AGAIN_S,
            )
        self._of_key[key.id] += 1
        self._of_tenant[key.tenant] += 1
        try:
            yield
        finally:
            self._of_key[key.id] -= 1
            self._of_tenant[key.tenant] -= 1
            # Who waits for nothing is not remembered.
            self._of_key += Counter()
            self._of_tenant += Counter()


_houses: WeakKeyDictionary[Runtime, Waiting] = WeakKeyDictionary()


def waiting(gate: Runtime) -> Waiting:
    """Those of this house."""
    return _houses.setdefault(gate, Waiting())
