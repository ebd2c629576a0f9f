"""Names: what a tool may be called here, and what a model's API will take.

OpenAI, Anthropic and most MCP clients refuse names beyond 64 characters of `[A-Za-z0-9_-]`. A name
that they would refuse (`mcp:files:read`) is mapped to one that they take, and mapped back.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from toolgate.errors import NameClash

MAX_LENGTH = 128
_OF_SERVERS = "mcp:"
# What models know those by.
_TO_MODELS = "mcp__"
_OURS = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,127}\Z")
_THEIRS = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_DIGITS = re.compile(r".*_[0-9a-f]{8}\Z")
# What is mapped begins or ends like this, and nothing else does.
_MAPPED = re.compile(rf"{_TO_MODELS}|{_DIGITS.pattern}")
# Of an MCP server, with parts that can be told apart again: no __ in its name, no _ at its end.
_SERVED = re.compile(r"mcp:([a-z0-9-]+(?:_[a-z0-9-]+)*):([A-Za-z0-9_-]+)\Z")
_MOST = 64
_NOT_THEIRS = re.compile(r"[^A-Za-z0-9_-]+")
_OF_HOUSE = ("toolgate:", "focal:")
EXPECTED = (
    "a name of 1 to 128 characters: letters, digits and _ . : / -, starting with a letter or _"
)


def kept(name: str, kind: str, where: str) -> str:
    """Why a tool of this origin may not be called this; empty where it may.

    Whoever calls `mcp:SERVER:TOOL` means that server, and nobody else answers.
    """
    if is_of_house(name):
        return f"begins with {name.partition(':')[0]}:, which is kept for toolgate itself"
    if name.startswith(_TO_MODELS):
        return f"begins with {_TO_MODELS}, as models know the tools of MCP servers"
    if not name.startswith(_OF_SERVERS) or (
        kind == "mcp" and name.startswith(f"{_OF_SERVERS}{where}:")
    ):
        return ""
    return f"begins with {_OF_SERVERS}, which is kept for the tools of MCP servers"


def is_of_house(name: str) -> bool:
    """Whether a name or a URI is one of toolgate's own: a scheme is the same in any letters."""
    return name.strip().lower().startswith(_OF_HOUSE)


def is_name(text: str) -> bool:
    """Whether a tool may be called this."""
    return _OURS.match(text) is not None


def for_model(name: str) -> str:
    """The name under which a model's API takes this tool; itself where it can be.

    `mcp:files:read` becomes `mcp__files__read`. Any other mapped name ends in eight digits of the
    original's digest, so that two tools do not meet. A name that looks mapped is mapped too: nobody
    can take another tool's place by its mapped name. What else there is changes no name.
    """
    served = _SERVED.match(name)
    if served is not None:
        plain = f"{_TO_MODELS}{served[1]}__{served[2]}"
        if len(plain) <= _MOST and not _DIGITS.match(plain):
            return plain
    if _THEIRS.match(name) and not _MAPPED.match(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    stem = _NOT_THEIRS.sub("_", name).strip("_")[:55]
    return f"{stem}_{digest}"


def from_model(names: Iterable[str]) -> Mapping[str, str]:
    """The way back, for these tools: model's name to ours."""
    back: dict[str, str] = {}
    for name in names:
        other = back.setdefault(for_model(name), name)
        if other != name:
            raise NameClash(
                f"A model would know both {other!r} and {name!r} as {for_model(name)!r}. "
                "Rename one of them."
            )
    return MappingProxyType(back)
