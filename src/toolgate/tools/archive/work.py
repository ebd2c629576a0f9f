"""What a worker does with an archive: its bytes come with the question, and it opens no file."""

import base64
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from toolgate.errors import ToolError
from toolgate.tools.archive.entry import Entry, problems, refusal
from toolgate.tools.archive.flow import Full, Reader, Taking
from toolgate.tools.archive.formats import reader
from toolgate.tools.archive.limits import MEMBER
from toolgate.tools.archive.matching import Matching
from toolgate.tools.working.parcel import Parcel

Given = TypeVar("Given")


class _Window:
    """Some bytes of the wanted files, as if these were one behind the other."""

    def __init__(self, wanted: frozenset[int], begin: int, most: int) -> None:
        self._wanted = wanted
        self._begin = begin
        self._end = begin + most
        self._at = 0
        self.pieces: list[tuple[int, bytearray]] = []
        self.is_all = True

    def wants(self, place: int) -> bool:
        """Those that were asked for."""
        return place in self._wanted

    def take(self, place: int, piece: bytes) -> None:
        """As much of it as is in the window."""
        if self._at >= self._end:
            self.is_all = False
            raise Full
        part = piece[max(0, self._begin - self._at) : self._end - self._at]
        self._at += len(piece)
        if not part:
            return
        if not self.pieces or self.pieces[-1][0] != place:
            self.pieces.append((place, bytearray()))
        self.pieces[-1][1].extend(part)
        if self._at > self._end:
            self.is_all = False
            raise Full


def manifest(data: bytes) -> dict[str, Any]:
    """What it holds, and what is wrong with it."""

    def look(archive: Reader, size: int) -> dict[str, Any]:
        found = list(archive.entries())
        bad = problems(found, size)
        for one in bad:
            # A name that nothing may be called is told, but not as it is.
            found[one.place] = msgspec.structs.replace(found[one.place], name=one.name)
        return {
            "format": archive.format,
            "entries": [msgspec.to_builtins(entry) for entry in found],
            "problems": [{"name": one.name, "why": one.why} for one in bad],
        }

    return _read(data, look)


def window(data: bytes, places: list[int], begin: int, most: int) -> Parcel:
    """The next bytes of some entries, one behind the other, and whether they are the last."""

    def look(archive: Reader, _size: int) -> Parcel:
        found = _Window(frozenset(places), begin, most)
        _pumped(archive, found)
        pieces = [(place, len(piece)) for place, piece in found.pieces]
        return Parcel({"pieces": pieces, "is_all": found.is_all}, _joined(found))

    return _read(data, look)


def member(data: bytes, name: str, begin: int, most: int) -> dict[str, Any]:
    """A piece of one file in it."""

    def look(archive: Reader, size: int) -> dict[str, Any]:
        found = _sound(archive, size)
        place = _place(found, name)
        head = _Window(frozenset({place}), 0, 8_192)
        piece = _Window(frozenset({place}), begin, most)
        _pumped(archive, piece)
        if begin:
            _pumped(archive, head)
        else:
            head = piece
        return {
            "name": found[place].path,
            "size": found[place].size,
            "head": base64.b64encode(_joined(head)[:8_192]).decode(),
            "content": base64.b64encode(_joined(piece)).decode(),
        }

    return _read(data, look)


def search(data: bytes, question: dict[str, Any]) -> dict[str, Any]:
    """Names and lines that hold a text."""

    def look(archive: Reader, size: int) -> dict[str, Any]:
        found = _sound(archive, size)
        matching = Matching(found, **question)
        _pumped(archive, matching)
        return matching.told()

    return _read(data, look)


def _read(data: bytes, look: Callable[[Reader, int], Given]) -> Given:
    try:
        return look(reader(data), len(data))
    except (ToolError, MemoryError):
        raise
    except Exception as error:
        # Libraries raise anything at all over bytes that somebody has bent.
        raise ToolError(
            "The archive is damaged, or not what it says that it is. It was not unpacked."
        ) from error


def _pumped(archive: Reader, taking: Taking) -> None:
    try:
        archive.pump(taking)
    except Full:
        return


def _sound(archive: Reader, size: int) -> Sequence[Entry]:
    found = archive.entries()
    bad = problems(found, size)
    if bad:
        raise ToolError(refusal(bad[0].name, bad[0].why, len(bad)))
    return found


def _place(found: Sequence[Entry], name: str) -> int:
    wanted = "/".join(part for part in name.split("/") if part not in {"", "."})
    for place, entry in enumerate(found):
        if entry.path == wanted and entry.kind == "file":
            if entry.size > MEMBER:
                raise ToolError(
                    f"That file has {entry.size:,} bytes, and at most {MEMBER:,} are shown. Use "
                    "archive_extract."
                )
            return place
    raise ToolError(f"The archive has no file {name[:200]!r}. Look at it with archive_open.")


def _joined(window: _Window) -> bytes:
    return b"".join(bytes(piece) for _, piece in window.pieces)
