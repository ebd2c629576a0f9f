"""The sections of a page: by their headings, by how the page calls them, by words in them."""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolgate.tools.meaning.words import spaced, terms

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(.+)")
_MARKS = re.compile(r"[^\w\s-]")
# Words of any question, which say nothing about this one.
_USUAL = frozenset(
    "a an and are can do does for how i in is it my of on or the there to what when where which "  # noqa: SIM905  a line of words
    "why with you".split()
)
# A word in a heading says as much as so many below it.
_HEAD = 4


class Section(NamedTuple):
    """From its heading to the next one of any level; one without a heading is before the first."""

    heading: str
    level: int
    anchor: str
    start: int
    end: int


def headings_of(markdown: str) -> list[dict[str, Any]]:
    """Those of a Markdown text, with the anchors that readers of it make."""
    found: list[dict[str, Any]] = []
    at, fence = 0, ""
    for line in markdown.splitlines(keepends=True):
        marks = _FENCE.match(line)
        if marks and (not fence or marks[1].startswith(fence)):
            fence = "" if fence else marks[1]
        elif not fence and (one := _HEADING.match(line.rstrip("\r\n"))):
            text = _unclosed(one[2])
            anchor = re.sub(r"\s", "-", _MARKS.sub("", text.lower()).strip())
            found.append({"at": at, "level": len(one[1]), "text": text, "anchor": anchor})
        at += len(line)
    return found


def _unclosed(heading: str) -> str:
    """Without the marks that may stand at its end, behind a blank: not those of `C#`."""
    text = heading.rstrip(" \t")
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) else text


def sections(text: str, headings: Sequence[dict[str, Any]]) -> list[Section]:
    """All of the text, in order."""
    starts = [one["at"] for one in headings] + [len(text)]
    found = [
        Section(one["text"], one["level"], one["anchor"], one["at"], starts[at + 1])
        for at, one in enumerate(headings)
    ]
    if text[: starts[0]].strip():
        found.insert(0, Section("", 0, "", 0, starts[0]))
    return found


def named(every: Sequence[Section], name: str) -> list[Section]:
    """The section of that anchor or heading, with all below it."""
    wanted = name.strip().lstrip("#").strip().casefold()
    if not wanted:
        return []
    fits = [
        [one.anchor.casefold() == wanted for one in every],
        [one.heading.casefold() == wanted for one in every],
        [wanted in one.heading.casefold() for one in every],
    ]
    at = next((row.index(True) for row in fits if True in row), None)
    if at is None:
        return []
    below = every[at + 1 :]
    level = every[at].level
    end = next((step for step, one in enumerate(below) if one.level <= level), len(below))
    return [every[at], *below[:end]]


def about(every: Sequence[Section], text: str, query: str, limit: int) -> list[Section]:
    """Those that have the most of its words, in the order of the page, within `limit`."""
    words = [word for word in terms(query) if word not in _USUAL] or terms(query)
    bodies = [spaced(text[one.start : one.end]) for one in every]
    heads = [spaced(one.heading) for one in every]
    rare = [
        math.log(1 + len(every) / (1 + sum(f" {word} " in body for body in bodies)))
        for word in words
    ]
    scores = [
        math.fsum(
            weight * _said(head.count(f" {word} ") * _HEAD + body.count(f" {word} "))
            for word, weight in zip(words, rare, strict=True)
        )
        for head, body in zip(heads, bodies, strict=True)
    ]
    order = sorted(range(len(every)), key=lambda at: (-scores[at], at))
    kept: list[int] = []
    left = limit
    best = scores[order[0]] if order else 0.0
    for at in order:
        size = every[at].end - every[at].start
        if scores[at] <= 0 or scores[at] < best / 3 or (kept and size > left):
            break
        kept.append(at)
        left -= size
    return [every[at] for at in sorted(kept)]


def _said(count: int) -> float:
    """Saying it again counts, and less each time."""
    return count / (count + 2)
