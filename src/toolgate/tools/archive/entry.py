"""What an archive says that it holds, and what is wrong with it: one bad entry spoils them all."""

import stat
import unicodedata
from collections.abc import Sequence

import msgspec

from toolgate.errors import ToolError
from toolgate.tools.archive.limits import DEPTH, ENTRIES, Meter
from toolgate.tools.system.naming import check_new, parts_of

_LONGEST = 1_000
# Programs that run as somebody else.
_SPECIAL = stat.S_ISUID | stat.S_ISGID

_UNUSABLE = {"link": "a link", "other": "neither a file nor a folder"}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One of them. `kind`: file, folder, link or other. `problem`: what its reader found."""

    name: str
    kind: str
    size: int
    mode: int = 0
    problem: str = ""

    @property
    def path(self) -> str:
        """The name without what says nothing."""
        return "/".join(part for part in self.name.split("/") if part not in {"", "."})


class Problem(msgspec.Struct, frozen=True):
    """Why an archive is not unpacked. `place`: which of its entries is to blame."""

    place: int
    name: str
    why: str


def problems(entries: Sequence[Entry], archive: int) -> list[Problem]:
    """All that speaks against unpacking it; `ToolError` where it is too much to be looked at."""
    if len(entries) > ENTRIES:
        raise ToolError(f"The archive has more than {ENTRIES:,} entries, which is too many.")
    meter = Meter(archive)
    found: list[Problem] = []
    spelled: dict[str, tuple[str, str]] = {}
    for place, entry in enumerate(entries):
        if entry.size > 0:
            meter.spend(entry.size)
        why = _own_problem(entry) or _collision(entry, spelled)
        if why:
            found.append(Problem(place, _shown(entry.name), why))
    return found


def refusal(name: str, why: str, count: int) -> str:
    """The sentence for an archive with something wrong in it."""
    more = f" {count - 1:,} more are wrong too." if count > 1 else ""
    return (
        f"The archive is refused as a whole, and nothing was unpacked. Of {name!r}: {why}.{more} "
        "Pack it anew with plain files and folders."
    )


def _own_problem(entry: Entry) -> str:
    if entry.problem or entry.kind not in {"file", "folder"}:
        return entry.problem or f"it is {_UNUSABLE[entry.kind]}"
    if entry.mode & _SPECIAL and entry.kind == "file":
        return "it is to run as somebody else (set-uid)"
    if entry.size < 0:
        return "its size is below zero"
    if len(entry.name) > _LONGEST:
        return "its path is too long"
    try:
        parts = parts_of(entry.name)
        for part in parts:
            check_new(part)
    except ToolError as error:
        return f"its name is not safe: {error.message.partition('. ')[0]}"
    if not parts and entry.kind == "file":
        return "it has no name"
    return "it is too deep in folders" if len(parts) > DEPTH else ""


def _collision(entry: Entry, spelled: dict[str, tuple[str, str]]) -> str:
    """Whether two would be the same file, here or where capitals do not count."""
    parts = entry.path.split("/")
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        kind = entry.kind if count == len(parts) else "folder"
        folded = unicodedata.normalize("NFC", path).casefold()
        before = spelled.setdefault(folded, (path, kind))
        if before[0] != path:
            return "its name is another's but for capitals"
        if before[1] != kind:
            return "it is a file and a folder at once"
    folded = unicodedata.normalize("NFC", entry.path).casefold()
    if entry.kind == "file":
        if f"\0{folded}" in spelled:
            return "its name is there twice"
        spelled[f"\0{folded}"] = (entry.path, "file")
    return ""


def _shown(name: str) -> str:
    plain = "".join(sign if sign.isprintable() else "?" for sign in name)
    return plain.encode("utf-8", "replace").decode()[:200]
