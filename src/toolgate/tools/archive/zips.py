"""Zip archives, read by the standard library; nothing of it is ever unpacked by the library."""

import io
import stat
import zipfile
from collections.abc import Sequence

from toolgate.errors import ToolError
from toolgate.tools.archive.entry import Entry
from toolgate.tools.archive.flow import PIECE, Taking
from toolgate.tools.archive.limits import ENTRIES, Meter

_HEADER = 30
_UNIX = 3
_ENCRYPTED = 0x1
# What begins every row of the list of entries.
_ROW = b"PK\x01\x02"


class ZipReader:
    """Over the bytes of one."""

    format = "zip"

    def __init__(self, data: bytes) -> None:
        # Before the library makes an object of each; archives in it may hold some more.
        if data.count(_ROW) > 10 * ENTRIES:
            raise ToolError(f"The archive has more than {ENTRIES:,} entries, which is too many.")
        self._size = len(data)
        self._file = zipfile.ZipFile(io.BytesIO(data))

    def entries(self) -> Sequence[Entry]:
        """As the list at its end has them."""
        overlapping = self._overlapping()
        return [_entry(info, overlapping) for info in self._file.infolist()]

    def pump(self, taking: Taking) -> None:
        """Each is read to its end, so that its checksum is looked at."""
        meter = Meter(self._size)
        for place, info in enumerate(self._file.infolist()):
            if info.is_dir() or not taking.wants(place):
                continue
            read = 0
            with self._file.open(info) as file:
                while piece := file.read(PIECE):
                    read += len(piece)
                    meter.spend(len(piece))
                    taking.take(place, piece)
            if read != info.file_size:
                raise zipfile.BadZipFile("shorter than it says")

    def _overlapping(self) -> set[int]:
        """Where entries begin that share bytes with another: one byte is to be unpacked once."""
        infos = sorted(self._file.infolist(), key=lambda info: info.header_offset)
        found = {info.header_offset for info in infos if info.header_offset < 0}
        ends = [*(info.header_offset for info in infos[1:]), self._file.start_dir]
        for info, end in zip(infos, ends, strict=False):
            name = len(info.orig_filename.encode("utf-8", "surrogateescape"))
            least = _HEADER + min(name, len(info.orig_filename)) + info.compress_size
            if info.header_offset + least > end:
                found.add(info.header_offset)
        return found


def _entry(info: zipfile.ZipInfo, overlapping: set[int]) -> Entry:
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    kind = "folder" if info.is_dir() else "file"
    form = stat.S_IFMT(mode)
    if form == stat.S_IFLNK:
        kind = "link"
    elif form and form not in {stat.S_IFREG, stat.S_IFDIR}:
        kind = "other"
    problem = ""
    if info.flag_bits & _ENCRYPTED:
        problem = "it is encrypted"
    elif "\0" in info.orig_filename or "\\" in info.orig_filename:
        problem = "its name is not safe"
    elif info.header_offset in overlapping:
        problem = "it overlaps with another"
    elif kind == "folder" and info.file_size:
        problem = "it is a folder with content"
    return Entry(
        name=info.orig_filename, kind=kind, size=info.file_size, mode=mode & 0o7777, problem=problem
    )
