"""Whose account at Composio a call uses: made from who calls, and from nothing that they send."""

import re
from urllib.parse import quote

from toolgate.caller import Caller

_PLACE = re.compile(r"\{(tenant|user|agent)\}")


class Nobody(Exception):
    """The caller lacks what the account is named by."""

    def __init__(self, lacking: str) -> None:
        super().__init__(lacking)
        self.lacking = lacking


def entity(pattern: str, caller: Caller) -> str:
    """The account's name, or `Nobody`. Two callers have one only where all that it names agrees."""

    def filled(place: re.Match[str]) -> str:
        value: str = getattr(caller, place[1])
        if not value:
            raise Nobody(place[1])
        # What stands between two names cannot stand in one.
        return quote(value, safe="@")

    return _PLACE.sub(filled, pattern)
