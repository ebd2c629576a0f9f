"""How much a query may do: counted in elements looked at and characters written."""


class OverspentError(Exception):
    """There is nothing left."""


class Budget:
    """Paid from before something is done."""

    def __init__(self, left: int) -> None:
        self.left = left

    def pay(self, price: int) -> None:
        """Refuse what costs more than is left."""
        self.left -= price
        if self.left < 0:
            raise OverspentError
