"""A question to a search engine, and one thing that it found."""

import html
import re
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from toolgate.tools.web.invisible import clean

Recency = Literal["any", "day", "week", "month", "year"]
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_LONGEST = 1_000
_LONGEST_URL = 2_000


class Question(NamedTuple):
    """In words. `language` is a code such as `en`, or nothing."""

    words: str
    limit: int
    recency: Recency
    language: str


class Hit(NamedTuple):
    """A page: what it is called, where it is, and some of its words."""

    title: str
    url: str
    snippet: str


def hit(title: Any, url: Any, snippet: Any) -> Hit | None:
    """One of what an engine says, if it leads to a page."""
    if not isinstance(url, str) or not isinstance(title, str) or len(url) > _LONGEST_URL:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return None
    words = snippet if isinstance(snippet, str) else ""
    return Hit(_plain(title) or url, clean(url), _plain(words))


def unmarked(text: Any) -> Any:
    """Text of an engine that marks in HTML the words that it found."""
    return html.unescape(_TAG.sub("", text)) if isinstance(text, str) else text


def _plain(text: str) -> str:
    return " ".join(clean(text[: 4 * _LONGEST]).split())[:_LONGEST]
