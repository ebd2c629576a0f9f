"""A document cut into passages: whole paragraphs of one heading, as long as they stay short."""

import re
from collections.abc import Iterable, Sequence

from toolgate.tools.documents.block import Block

# What one vector can still stand for, and a model reads in a moment.
_LONG = 800
_SENTENCE = re.compile(r"(?<=[.!?\u2026\u3002\uff01\uff1f])\s+|\n")


def passages(blocks: Sequence[Block]) -> list[Block]:
    """Blocks again, each about as long as a paragraph of a book."""
    found: list[Block] = []
    for block in blocks:
        for piece in _pieces(block.text):
            last = found[-1] if found else None
            if (
                last is not None
                and (last.heading, last.page) == (block.heading, block.page)
                and len(last.text) + len(piece) < _LONG
            ):
                found[-1] = Block(f"{last.text}\n\n{piece}", block.heading, block.page)
            else:
                found.append(Block(piece, block.heading, block.page))
    return found


def _pieces(text: str) -> Iterable[str]:
    """A paragraph, cut between sentences where it is too long, and between words if need be."""
    if len(text) <= _LONG:
        return [text]
    found: list[str] = []
    for sentence in _SENTENCE.split(text):
        for part in _cut(sentence):
            if found and len(found[-1]) + len(part) < _LONG:
                found[-1] = f"{found[-1]} {part}"
            else:
                found.append(part)
    return [one for one in found if one.strip()]


def _cut(sentence: str) -> Iterable[str]:
    while len(sentence) > _LONG:
        space = sentence.rfind(" ", 1, _LONG)
        end = space if space > 0 else _LONG
        yield sentence[:end]
        sentence = sentence[end:].lstrip()
    yield sentence
