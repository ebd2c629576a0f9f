"""Tar archives, plain or compressed, read as a stream; the library unpacks nothing of them."""

import bz2
import gzip
import importlib
import io
import lzma
import tarfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO, cast

from toolgate.errors import ToolError
from toolgate.tools.archive.entry import Entry
from toolgate.tools.archive.flow import PIECE, Taking
from toolgate.tools.archive.limits import ENTRIES, Meter

# What stands between the files.
_OVERHEAD = ENTRIES * 4_096
_BLOCK = 512 * 1_024


class _Measured(io.RawIOBase):
    """What is unpacked, stopped where it is too much."""

    def __init__(self, file: BinaryIO, archive: int) -> None:
        self._file = file
        self._meter = Meter(archive)
        self._left = _OVERHEAD

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes."""
        piece = self._file.read(size)
        free = min(self._left, len(piece))
        self._left -= free
        self._meter.spend(len(piece) - free)
        return piece


class TarReader:
    """Over the bytes of one; `packing` is how they are compressed, if at all."""

    def __init__(self, data: bytes, packing: str) -> None:
        self._data = data
        self._packing = packing
        self.format = f"tar.{packing}" if packing else "tar"

    def entries(self) -> Sequence[Entry]:
        """All of it is read for that: a tar has no list."""
        return [_entry(member) for _, member in self._members()]

    def pump(self, taking: Taking) -> None:
        """In one go from its beginning."""
        for tar, (place, member) in self._numbered():
            if not member.isreg() or member.issparse() or not taking.wants(place):
                continue
            file = tar.extractfile(member)
            left = member.size
            while left > 0 and file is not None:
                piece = file.read(min(PIECE, left))
                if not piece:
                    raise tarfile.ReadError("shorter than it says")
                left -= len(piece)
                taking.take(place, piece)

    def _members(self) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
        meter = Meter(len(self._data))
        with self._unpacked() as file:
            measured = cast("BinaryIO", _Measured(file, len(self._data)))
            with tarfile.open(fileobj=measured, mode="r|", encoding="utf-8", bufsize=_BLOCK) as tar:
                for count, member in enumerate(tar):
                    if count >= ENTRIES:
                        raise ToolError(
                            f"The archive has more than {ENTRIES:,} entries, which is too many."
                        )
                    meter.spend(max(0, member.size))
                    yield tar, member

    def _numbered(self) -> Iterator[tuple[tarfile.TarFile, tuple[int, tarfile.TarInfo]]]:
        for place, (tar, member) in enumerate(self._members()):
            yield tar, (place, member)

    def _unpacked(self) -> BinaryIO:
        raw = io.BytesIO(self._data)
        match self._packing:
            case "gz":
                return cast("BinaryIO", gzip.GzipFile(fileobj=raw))
            case "bz2":
                return cast("BinaryIO", bz2.BZ2File(raw))
            case "xz":
                return cast("BinaryIO", lzma.LZMAFile(raw))
            case "zst":
                return _zst(raw)
            case _:
                return raw


def _zst(raw: io.BytesIO) -> BinaryIO:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name).ZstdFile(raw)
        except ImportError:
            continue
    raise ToolError(
        "To read zst, a part is missing here. Ask the operator to install it: make install "
        "EXTRAS=tools. Or pack the archive in another way."
    )


def _entry(member: tarfile.TarInfo) -> Entry:
    kind = "other"
    if member.issym() or member.islnk():
        kind = "link"
    elif member.isdir():
        kind = "folder"
    elif member.isreg() and not member.issparse():
        kind = "file"
    return Entry(name=member.name, kind=kind, size=member.size, mode=member.mode & 0o7777)
