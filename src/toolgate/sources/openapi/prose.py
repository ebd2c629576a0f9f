"""A document's words as a model and a person may read them: one line, bounded, nothing hidden."""

import re
from html import unescape
from typing import Any

# What steers a terminal, turns text around or cannot be seen.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
# The tags of ordinary text. `<id>` stands for a value and stays.
_TAG = re.compile(
    r"</?(?:a|b|i|p|em|strong|code|pre|br|hr|ul|ol|li|div|span|small|sub|sup|table|thead|tbody|tr"
    r"|td|th|h[1-6]|img|blockquote)(?:\s[^<>]{0,500})?/?>",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"<!--.{0,2000}?-->", re.DOTALL)


def tidy(given: Any, most: int) -> str:
    """One line of at most so many characters; what is no text is none."""
    if not isinstance(given, str):
        return ""
    # Tags and references make it longer than it will be.
    text = given[: most * 8]
    if "<" in text:
        text = _TAG.sub(" ", _COMMENT.sub(" ", text))
    if "&" in text:
        text = unescape(text)
    text = " ".join(_HIDDEN.sub("", text).split())
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0][: most - 1].rstrip(" ,;:") + "…"


def printable(given: Any, most: int = 120) -> str:
    """A word of the document in a message: nothing in it steers a terminal."""
    text = str(given)[: most * 2]
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"
