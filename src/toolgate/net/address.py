"""An address as it may be shown: without what can be a secret."""

from urllib.parse import urlsplit


def shown(url: str) -> str:
    """The address without user, password and query."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{host}{parts.path}{'?…' if parts.query else ''}"
