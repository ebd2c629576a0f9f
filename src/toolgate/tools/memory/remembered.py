"""A memory: a text, and where it comes from."""

import re
from datetime import UTC, datetime

import msgspec

_TAG = re.compile(r"(?<![\w#&])#([^\W_][\w-]{0,63})")
_MOST_TAGS = 32


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """One of them, and where it comes from."""

    id: str
    text: str
    saved_ns: int
    agent: str = ""
    user: str = ""
    session: str = ""

    @property
    def tags(self) -> list[str]:
        """The words of its text that have a # in front, in small letters."""
        return tags_of(self.text)

    @property
    def saved(self) -> str:
        """When, in UTC, to the second."""
        return datetime.fromtimestamp(self.saved_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def tags_of(text: str) -> list[str]:
    """Each once, in the order of the text."""
    return list(dict.fromkeys(tag.casefold() for tag in _TAG.findall(text)))[:_MOST_TAGS]
