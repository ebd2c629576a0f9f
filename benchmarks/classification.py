"""How often `classify_text` is right, and whether its scores say so, on texts of one's own.

`python -m benchmarks.classification FILE`. The file is CSV with the columns `text` and `label`; a
label's own words are all that is known of it. For each temperature it prints the share of right
answers, what the scores are off by on the mean, and the mean surprise at the right label, which is
lowest at the best temperature.
"""

import csv
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from toolgate.tools.llm.classify_text import TEMPERATURE
from toolgate.tools.llm.label import labels_of
from toolgate.tools.meaning.embedding import kept
from toolgate.tools.meaning.ranking import cosines
from toolgate.tools.meaning.static import static

_TRIED = (0.03, 0.04, 0.05, TEMPERATURE, 0.07, 0.08, 0.1, 0.15)
_BINS = 10
_LEAST = 1e-12


def main(path: Path) -> None:
    """Measure one file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(file)]
    names = sorted({label for _, label in rows})
    labels = [label.sentences[0] for label in labels_of(names)]
    known = [kept(one) for one in static().vectors(labels)]
    asked = static().vectors([text for text, _ in rows])
    right = [names.index(label) for _, label in rows]
    found = [cosines(one, known) for one in asked]
    print(f"{len(rows):,} texts, {len(names)} labels")
    for temperature in _TRIED:
        shares = [_shares(one, temperature) for one in found]
        surprise = math.fsum(
            -math.log(one[at] + _LEAST) for one, at in zip(shares, right, strict=True)
        )
        hits = [one[at] == max(one) for one, at in zip(shares, right, strict=True)]
        print(
            f"temperature {temperature:4.2f}: {sum(hits) / len(hits):6.1%} right, "
            f"off by {_off([max(one) for one in shares], hits):.3f}, "
            f"surprise {surprise / len(rows):.3f}"
        )


def _shares(found: Sequence[float], temperature: float) -> list[float]:
    best = max(found)
    parts = [math.exp((one - best) / temperature) for one in found]
    return [part / math.fsum(parts) for part in parts]


def _off(said: Sequence[float], hits: Sequence[bool]) -> float:
    """How far scores are from the share of right answers, over ten bins of scores."""
    total = 0.0
    for at in range(_BINS):
        inside = [one for one, score in enumerate(said) if at <= score * _BINS - _LEAST < at + 1]
        if inside:
            gap = math.fsum(hits[one] - said[one] for one in inside)
            total += abs(gap)
    return total / len(said)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
