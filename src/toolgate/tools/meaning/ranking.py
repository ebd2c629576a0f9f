"""How near texts are to a question: by their words, by what they mean, and by both together."""

import base64
import math
from collections.abc import Sequence

import msgspec
import numpy as np

# As usual for BM25: how soon a word that is said again counts less, and how much length counts.
_SOON = 1.2
_LENGTH = 0.75
# All words of a question together close so much of the gap that its meaning leaves.
_WORDS = 0.5
# What a text has that has nothing to do with the question.
_NOTHING = 0.5


class Text(msgspec.Struct, frozen=True):
    """One of those that are compared. Without a vector only its words are."""

    words: str
    vector: str = ""


def cosines(question: bytes, vectors: Sequence[str]) -> list[float]:
    """From -1 to 1, for vectors as they are kept; one of another length has nothing in common."""
    wanted = np.frombuffer(question, "<f4")
    raw = [base64.b64decode(one) for one in vectors]
    empty = bytes(2 * len(wanted))
    whole = b"".join(one if len(one) == len(empty) else empty for one in raw)
    rows = np.frombuffer(whole, "<f2").reshape(len(raw), len(wanted)).astype("<f4")
    return [float(one) for one in np.clip(rows @ wanted, -1.0, 1.0)]


def shares(terms: Sequence[str], texts: Sequence[str]) -> list[float]:
    """How much of a question's words a text has, from 0 to 1, where rare words count more."""
    if not terms or not texts:
        return [0.0] * len(texts)
    counts = [[text.count(f" {term} ") for term in terms] for text in texts]
    lengths = [max(text.count(" ") // 2, 1) for text in texts]
    usual = sum(lengths) / len(lengths)
    weights = [_rarity(len(texts), sum(1 for row in counts if row[at])) for at in range(len(terms))]
    return [
        math.fsum(
            weight * _said(count, length / usual)
            for weight, count in zip(weights, row, strict=True)
        )
        / math.fsum(weights)
        for row, length in zip(counts, lengths, strict=True)
    ]


def scores(question: bytes, terms: Sequence[str], texts: Sequence[Text]) -> list[float]:
    """Both together, from 0 to 1: the same text is 1, one that has nothing to do with it near 0.5.

    A cosine c is (1 + c) / 2, and words close a part of what is left to 1.
    """
    found = cosines(question, [text.vector for text in texts])
    near = [
        (1 + one) / 2 if text.vector else _NOTHING for one, text in zip(found, texts, strict=True)
    ]
    said = shares(terms, [text.words for text in texts])
    return [1 - (1 - one) * (1 - _WORDS * two) for one, two in zip(near, said, strict=True)]


def _rarity(texts: int, having: int) -> float:
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))


def _said(count: int, length: float) -> float:
    """1 for a word that is said once in a text of the usual length, and never more."""
    if not count:
        return 0.0
    damped = _SOON * (1 - _LENGTH + _LENGTH * length)
    return min(1.0, count * (_SOON + 1) / (count + damped))
