"""Characters that nobody sees: text for programs, in a text for readers."""

import re

_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    r"\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff]"
    # Joiners are part of some scripts and of emoji; a row of them is neither.
    r"|[\u200c\u200d]{2,}|(?<![^\s\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\s\x00-\x7f])"
)


def clean(text: str) -> str:
    """Without characters that nobody sees, and those that turn text around."""
    return _INVISIBLE.sub("", text)
