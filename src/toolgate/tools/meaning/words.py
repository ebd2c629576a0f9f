"""The words of a text, in a form that is counted quickly."""

import re

# Languages that are written without spaces are read character by character.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+")
_MOST = 64


def spaced(text: str) -> str:
    """Each word with a space on both sides, so that one and the next do not share it."""
    return "".join(f" {word} " for word in _WORD.findall(text.casefold()))


def terms(query: str) -> list[str]:
    """The different words of a question, each once."""
    return list(dict.fromkeys(_WORD.findall(query.casefold())))[:_MOST]
