"""What keeps a store from being worked on: an older copy of it was brought back.

Only `store.lineage` sets it; whoever begins, takes over or sends anything asks it first.
"""

from toolgate.errors import StoreQuarantined


class Hold:
    """Nothing, most of the time: `why` is empty."""

    def __init__(self) -> None:
        self.why = ""

    def check(self) -> None:
        """`StoreQuarantined` while nobody has decided what is to become of the store."""
        if self.why:
            raise self.refusal()

    def refusal(self) -> StoreQuarantined:
        """What is said to whoever would begin something."""
        return StoreQuarantined(
            f"The store is in quarantine: {self.why}. Nothing ran. An operator looks at what "
            "happened since, and then says: toolgate store accept --why REASON"
        )
