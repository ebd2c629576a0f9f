"""What a server's tools are called here, and which names could be taken for others."""

import hashlib
import re
from collections.abc import Iterable, Mapping

from toolgate.spec import names
from toolgate.spec.lookalike import folded, skeleton

NAMESPACE = "mcp:"
_NOT_OURS = re.compile(r"[^A-Za-z0-9_.:/-]+")
_JOINTS = str.maketrans("-.", "__")


def prefix_of(server: str, prefix: str | None) -> str:
    """What stands before the names of a server's tools."""
    return f"{NAMESPACE}{server}:" if prefix is None else prefix


def ours(prefix: str, name: str) -> str:
    """The tool's name here: its own behind the prefix, where that can be a name.

    Else one that can, with eight digits of the name's digest: no two names meet in it.
    """
    whole = prefix + name
    if names.is_name(whole):
        return whole
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = _NOT_OURS.sub("_", name).strip("_")
    most = names.MAX_LENGTH - len(prefix) - len(digest) - 1
    found = f"{prefix}{stem[: max(most, 0)]}_{digest}"
    # A digit cannot begin a name.
    return found if names.is_name(found) else f"_{found}"[: names.MAX_LENGTH]


def is_borrowed(server: str, name: str) -> bool:
    """Whether a name stands in the place that is kept for another server's tools."""
    return name.startswith(NAMESPACE) and not name.startswith(f"{NAMESPACE}{server}:")


def look_alikes(name: str, others: Mapping[str, str]) -> list[str]:
    """Why this name could be taken for another; `others` are names by their skeleton."""
    if not name.isascii():
        return ["its name has letters beyond ASCII, which can look like others"]
    other = others.get(skeleton(name))
    if other is not None and folded(other) != folded(name):
        return [f"its name can be taken for {other!r}"]
    return []


def spelled(name: str) -> str:
    """A whole name in one spelling: who reads `Send-Mail` may mean `send_mail`."""
    return name.casefold().translate(_JOINTS)


def respelled(name: str, others: Mapping[str, str]) -> list[str]:
    """Why a name of the catalog could be meant for another; `others` are by one spelling."""
    other = others.get(spelled(name))
    if other is None or other == name:
        return []
    return [f"its name is another spelling of {other!r}"]


def skeletons(found: Iterable[str]) -> dict[str, str]:
    """Names by their skeleton; the first of those that look alike."""
    known: dict[str, str] = {}
    for name in found:
        known.setdefault(skeleton(name), name)
    return known
