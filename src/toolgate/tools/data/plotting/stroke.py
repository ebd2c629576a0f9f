"""Straight lines: cut off at a frame, and as the dots that they are made of."""

from collections.abc import Iterator
from typing import NamedTuple

Point = tuple[float, float]


class Frame(NamedTuple):
    """What is shown: from the low corner to the high one."""

    left: float
    low: float
    right: float
    high: float

    def has(self, point: Point) -> bool:
        """Whether it is inside."""
        return self.left <= point[0] <= self.right and self.low <= point[1] <= self.high

    def cut(self, one: Point, two: Point) -> tuple[Point, Point] | None:
        """The part of a line that is inside; none where it passes by."""
        begin, end = 0.0, 1.0
        across, up = two[0] - one[0], two[1] - one[1]
        for step, room in (
            (-across, one[0] - self.left),
            (across, self.right - one[0]),
            (-up, one[1] - self.low),
            (up, self.high - one[1]),
        ):
            if step == 0:
                if room < 0:
                    return None
                continue
            at = room / step
            if step < 0:
                begin = max(begin, at)
            else:
                end = min(end, at)
        if begin > end:
            return None
        return (
            (one[0] + begin * across, one[1] + begin * up),
            (one[0] + end * across, one[1] + end * up),
        )


def dots(one: tuple[int, int], two: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Those between two dots, both included."""
    (x, y), (end_x, end_y) = one, two
    across, down = abs(end_x - x), -abs(end_y - y)
    right, below = (1 if end_x > x else -1), (1 if end_y > y else -1)
    error = across + down
    while True:
        yield x, y
        if x == end_x and y == end_y:
            return
        twice = 2 * error
        if twice >= down:
            error += down
            x += right
        if twice <= across:
            error += across
            y += below
