"""An address as it may be shown, and what an operator can have written into one."""

import base64
import re
from urllib.parse import unquote, urlsplit

_USER = re.compile(r"([A-Za-z]+://)([^/?#]*)@")


def shown(url: str) -> str:
    """The address without user, password and query."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{host}{parts.path}{'?…' if parts.query else ''}"


def without_user(url: str) -> str:
    """The address without user and password, as the client takes it."""
    return _USER.sub(r"\1", url, count=1)


def authorization(url: str) -> dict[str, str]:
    """The header that says the user and password in an address; none where there are none."""
    found = _USER.match(url)
    if found is None:
        return {}
    said = base64.b64encode(unquote(found[2]).encode()).decode()
    return {"Authorization": f"Basic {said}"}
