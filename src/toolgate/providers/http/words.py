"""What a service says went wrong, in words that can be passed on: short, plain, on one line."""

import re
from typing import Any, cast

import orjson

_MOST = 300
_SPACE = re.compile(r"\s+")
# Nothing that steers a terminal, turns text around or cannot be seen.
_ODD = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\U000e0000-\U000e007f]"
)
_NAMES = ("detail", "message", "error_description", "error_message", "title", "error", "errors",
          "reason", "description")  # fmt: skip
_DEEPEST = 4


def cleaned(text: str, most: int = _MOST) -> str:
    """A text without what does not belong into a message."""
    shown = _SPACE.sub(" ", _ODD.sub("", text[: most * 4])).strip()
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def told(kind: str, body: bytes) -> str:
    """What an error's body says, or nothing."""
    if "json" in kind:
        try:
            return cleaned(_said(orjson.loads(body), 0))
        except orjson.JSONDecodeError:
            return ""
    # A page for people is no message.
    if kind.startswith("text/plain"):
        return cleaned(body[:4_096].decode("utf-8", "replace"))
    return ""


def _said(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth >= _DEEPEST:
        return ""
    if isinstance(value, list):
        items = cast("list[Any]", value)[:3]
        return "; ".join(text for one in items if (text := _said(one, depth + 1)))
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for name in _NAMES:
            text = _said(fields.get(name), depth + 1)
            if text:
                return text
    return ""
