"""Whether and when to try again. Pure: it is told the dice, and who asks has the clock."""

# So many retries may be made before they have been earned: a tool that is seldom called needs them.
ADVANCE = 10.0
SHARE = 0.2


def pause(
    attempt: int, *, base: float, most: float, roll: float, asked: float | None = None
) -> float:
    """Seconds before the attempt after this one: anything up to a bound that doubles.

    `roll` is from 0 to 1. All of the pause is left to it, so that callers who failed together do
    not come back together. What the far side asked for is waited at least, but no longer than
    `most`.
    """
    # A float has no word for a large power of two.
    bound = min(most, base * 2.0 ** min(attempt - 1, 62))
    return max(roll * bound, min(asked or 0.0, most))


class Budget:
    """Retries are at most a share of the calls: a far side that is down is not asked much more.

    Each call earns its share of a retry. The first ones are had in advance, and paid off before
    more is earned; no more than these are ever saved.
    """

    __slots__ = ("_debt", "_saved")

    def __init__(self) -> None:
        self._saved = ADVANCE
        self._debt = ADVANCE

    def earn(self) -> None:
        """One call was made."""
        if self._debt > 0:
            self._debt -= SHARE
        elif self._saved < ADVANCE:
            self._saved += SHARE

    def spend(self) -> bool:
        """Take one retry, if there is one."""
        # Shares do not add up exactly.
        if self._saved < 1 - 1e-9:
            return False
        self._saved -= 1
        return True
