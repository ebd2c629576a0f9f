"""Many secrets in a long text: found in one pass, in a time that does not grow with their number.

The pass stops at each place where one of them could begin. Where so much of the text looks like
their beginnings that this would take long, all that is left of the text counts as secret.
"""

from collections.abc import Iterable, Iterator

from toolgate.spec.secret import HIDDEN, LEAST_TEXT

# How many places are looked at, and how much closer looks may cost for each: one look, and one more
# for each part of so many characters that it compares.
_MOST_PLACES = 2_000_000
_EFFORT = 4
_SPARE = 1_000
_PART = 256


class Sieve:
    """Texts of at least `LEAST_TEXT` characters, by how they begin."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(texts)
        begin: dict[str, set[int]] = {}
        for text in self._texts:
            begin.setdefault(text[:LEAST_TEXT], set()).add(len(text))
        # The longest first, so that no secret hides the rest of one that it begins.
        self._lengths = {
            how: (sorted(found, reverse=True), sum(1 + size // _PART for size in found))
            for how, found in begin.items()
        }

    def holds(self, text: str) -> bool:
        """Whether one of them stands in it, or that cannot be told in time."""
        return next(self._found(text), None) is not None

    def without(self, text: str) -> str:
        """The text with each of them hidden."""
        parts: list[str] = []
        after = 0
        for begin, end in self._found(text):
            parts += text[after:begin], HIDDEN
            after = end
        return "".join(parts) + text[after:] if parts else text

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        lengths, texts = self._lengths, self._texts
        effort = _EFFORT * len(text) + _SPARE
        at, last = 0, min(len(text), _MOST_PLACES)
        while at < last:
            here = lengths.get(text[at : at + LEAST_TEXT])
            if here is None:
                at += 1
                continue
            sizes, cost = here
            effort -= cost
            if effort < 0:
                break
            length = next((size for size in sizes if text[at : at + size] in texts), 0)
            if length:
                yield at, at + length
            at += length or 1
        if at < len(text):
            yield at, len(text)
