"""How much an archive may hold: what is beyond is refused while it is unpacked, not afterwards."""

from toolgate.errors import ToolError

MEGABYTE = 1_000_000
# The file itself, and all that is in it.
ARCHIVE = 20 * MEGABYTE
UNPACKED = 200 * MEGABYTE
ENTRIES = 10_000
DEPTH = 32
# So many times its own size, beyond what is always allowed.
RATIO = 200
FREE = 10 * MEGABYTE
# A member that is searched or shown is in memory as a whole.
MEMBER = 16 * MEGABYTE
# Seconds that a process may take for one look at an archive.
SECONDS = 60.0


class Meter:
    """Counts what comes out of an archive, and stops it where that is too much."""

    def __init__(self, archive: int) -> None:
        self._most = min(UNPACKED, max(FREE, RATIO * archive))
        self.total = 0

    def spend(self, count: int) -> None:
        """So many bytes more."""
        self.total += count
        if self.total > self._most:
            raise ToolError(
                f"The archive holds more than it may: it was stopped at {self._most:,} bytes. At "
                f"most {UNPACKED:,} bytes are unpacked, and {RATIO} times the archive's own size."
            )
