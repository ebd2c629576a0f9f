"""Whether chains agree: split R-hat, and how many independent draws theirs are worth.

Needs numpy, so that only workers import this.
"""

import math
from typing import Any

import numpy as np

_LAGS = 64


def r_hat(chains: Any) -> float | None:
    """Of `chains[chain, draw]`: near 1 where halves of chains look alike; nothing if none moved."""
    halves = _halves(chains)
    draws = halves.shape[1]
    within = float(halves.var(axis=1, ddof=1).mean())
    between = draws * float(halves.mean(axis=1).var(ddof=1))
    if not within > 0.0:
        return None
    return math.sqrt(((draws - 1) / draws * within + between / draws) / within)


def effective_size(chains: Any) -> float | None:
    """The number of independent draws that know the mean as well as these."""
    halves = _halves(chains)
    count, draws = halves.shape
    within = float(halves.var(axis=1, ddof=1).mean())
    if not within > 0.0:
        return None
    spread = within * (draws - 1) / draws + float(halves.mean(axis=1).var(ddof=1))
    # Chains that mix well forget soon: few lags are enough, and far cheaper than all.
    pairs = np.zeros(1)
    for lags in (min(_LAGS, draws), draws):
        like = 1.0 - (within - _autocovariance(halves, lags)) / spread
        like[0] = 1.0
        # Sums of neighbours are positive and fall; where they do not, there is only noise.
        pairs = like[: lags // 2 * 2].reshape(-1, 2).sum(axis=1)
        negative = np.flatnonzero(pairs < 0.0)
        if negative.size:
            pairs = pairs[: negative[0]]
            break
    total = float(np.minimum.accumulate(pairs).sum())
    time = max(2.0 * total - 1.0, 1.0 / math.log10(max(count * draws, 10)))
    return count * draws / time


def _halves(chains: Any) -> Any:
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _autocovariance(chains: Any, lags: int) -> Any:
    """The mean of all chains, for each lag; one chain at a time, since there may be many draws."""
    count, draws = chains.shape
    total = np.zeros(lags)
    length = 2 ** math.ceil(math.log2(2 * draws))
    for one in chains:
        away = one - one.mean()
        if lags <= _LAGS:
            total += [away[: draws - lag] @ away[lag:] for lag in range(lags)]
            continue
        waves = np.fft.rfft(away, length)
        total += np.fft.irfft(waves.real**2 + waves.imag**2, length)[:lags]
    return total / (count * draws)
