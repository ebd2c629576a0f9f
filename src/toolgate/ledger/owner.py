"""Who this process is to the ledger, and what it is at."""

import os


class Owner:
    """A name that no other process has, how long its word holds, and the calls it runs.

    Only what it runs is kept alive: a row whose answer never came would else be its for ever.
    """

    def __init__(self, *, lease: float = 15.0) -> None:
        """`lease` is in seconds."""
        self.name = f"{os.getpid():x}-{os.urandom(4).hex()}"
        self.lease_ns = round(lease * 1e9)
        self.running: set[str] = set()
