"""Whether this machine and the database agree on the time. Leases are by the database's clock, but
records, budgets and expiry are read by people and processes that have one of their own.
"""

import logging

from toolgate import clock
from toolgate.errors import StoreUnavailable
from toolgate.store.database import Database

_log = logging.getLogger("toolgate.store")
MOST_NS = 5_000_000_000
_EVERY_NS = 10_000_000_000
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint"


class Skew:
    """Compares now and then. Where the clocks are far apart, nothing new is claimed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due_ns = 0
        self._apart_ns = 0

    async def check(self) -> None:
        """`StoreUnavailable` while they disagree too much; asked unless it was a moment ago."""
        if clock.monotonic_ns() >= self._due_ns:
            await self._compare()
        if self._apart_ns > MOST_NS:
            raise StoreUnavailable(
                f"The clocks of this machine and of the database are {self._apart_ns / 1e9:.0f} s "
                "apart. Nothing ran: set them right, and try again."
            )

    async def _compare(self) -> None:
        before_ns = clock.unix_ns()
        rows = await self._database.ask(_NOW)
        after_ns = clock.unix_ns()
        self._due_ns = clock.monotonic_ns() + _EVERY_NS
        was_apart, there_ns = self._apart_ns > MOST_NS, rows[0][0]
        # Its answer was made at some time in between.
        self._apart_ns = max(before_ns - there_ns, there_ns - after_ns, 0)
        if self._apart_ns > MOST_NS and not was_apart:
            _log.error(
                "this clock and the database's are %.1f s apart: side effects are refused",
                self._apart_ns / 1e9,
            )
