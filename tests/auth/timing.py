"""Whether two kinds of questions can be told apart by how long their answers take."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import mean, median, stdev
from typing import NamedTuple

_BLOCKS = 40
# So many standard errors are no chance: it would be one in a billion, and medians have thin tails.
USABLE = 6.0
# Less is what a processor's caches make of any two questions, and no wire carries it.
USABLE_NS = 10.0


class Gap(NamedTuple):
    """How much longer the first kind takes, and in how many standard errors."""

    ns: float
    score: float

    @property
    def is_usable(self) -> bool:
        """Whether somebody who asks so often can go by it."""
        return abs(self.score) > USABLE and abs(self.ns) > USABLE_NS


def gap(first: Sequence[int], second: Sequence[int]) -> Gap:
    """By the medians of many short spells: what disturbs one spell disturbs both kinds in it."""
    spells = zip(_spells(first), _spells(second), strict=True)
    found = [median(one) - median(other) for one, other in spells]
    return Gap(mean(found), mean(found) / (max(stdev(found), 1e-9) / len(found) ** 0.5))


def sampled(
    ask: Callable[[bytes], object], kinds: Mapping[str, Callable[[], bytes]], many: int, seed: int
) -> dict[str, list[int]]:
    """How long each question took, by its kind; in an order that is drawn, so that whatever else
    this machine does meets all kinds alike.
    """
    order = [kind for kind in kinds for _ in range(many)]
    Random(seed).shuffle(order)  # noqa: S311  nothing secret is drawn
    # All are made before one is asked, and in that order: where they lie tells nothing.
    questions = [(kind, kinds[kind]()) for kind in order]
    took: dict[str, list[int]] = {kind: [] for kind in kinds}
    gc.disable()
    try:
        for kind, question in questions:
            began = time.perf_counter_ns()
            ask(question)
            ended = time.perf_counter_ns()
            took[kind].append(ended - began)
    finally:
        gc.enable()
    return took


def _spells(times: Sequence[int]) -> list[Sequence[int]]:
    size = len(times) // _BLOCKS
    return [times[start : start + size] for start in range(0, size * _BLOCKS, size)]
