"""How much of other servers the clients of one key may watch together."""

# A quarter of what any server is told of in all: one key must not keep all others from watching.
MOST, MOST_LETTERS = 2_500, 256 * 1024


class Allowance:
    """By key: how many resources its clients watch, and how long their URIs are together."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[int, int]] = {}

    def take(self, key: str, uri: str) -> bool:
        """Whether one more may be watched; then it is counted."""
        count, letters = self._taken.get(key, (0, 0))
        if count >= MOST or letters + len(uri) > MOST_LETTERS:
            return False
        self._taken[key] = count + 1, letters + len(uri)
        return True

    def give(self, key: str, uri: str) -> None:
        """It is watched no longer."""
        count, letters = self._taken.pop(key)
        if count > 1:
            self._taken[key] = count - 1, letters - len(uri)
