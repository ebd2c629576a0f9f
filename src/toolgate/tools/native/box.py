"""Bounds as arrays: a box that variables stay in.

Needs numpy, so that only workers import this.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Beyond, squares are no numbers any more, nor is the width of a box.
EDGE = 1e150


def ends(names: Sequence[str], bounds: Mapping[str, Sequence[float | None]]) -> tuple[Any, Any]:
    """Low and high ones, as far as numbers can be used where there are none."""
    pairs = [bounds.get(name, (None, None)) for name in names]
    low = [-EDGE if one is None else one for one, _ in pairs]
    high = [EDGE if one is None else one for _, one in pairs]
    return np.array(low, dtype=float), np.array(high, dtype=float)
