"""7z archives, read by py7zr into writers of our own: it makes no file itself."""

import io
import stat
from collections.abc import Sequence
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.archive.entry import Entry
from toolgate.tools.archive.flow import Taking
from toolgate.tools.archive.limits import ENTRIES, UNPACKED, Meter

try:
    import py7zr
    from py7zr.io import Py7zIO, WriterFactory
except ImportError:
    raise ToolError(
        "To read 7z, a part is missing here. Ask the operator to install it: make install "
        "EXTRAS=tools. Or pack the archive as zip or tar."
    ) from None

_ENCRYPTED = "The archive is encrypted, which is not read here. Unpack it elsewhere."


class _Writer(Py7zIO):
    """Hands on what comes, and keeps nothing."""

    def __init__(self, place: int | None, taking: Taking, meter: Meter) -> None:
        self._place = place
        self._taking = taking
        self._meter = meter
        self._size = 0

    def write(self, s: bytes | bytearray) -> int:
        """The next piece."""
        self._size += len(s)
        self._meter.spend(len(s))
        if self._place is not None:
            self._taking.take(self._place, bytes(s))
        return len(s)

    def read(self, size: int | None = None) -> bytes:  # noqa: ARG002  there is nothing to read
        """Nothing is kept."""
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:  # noqa: ARG002  as above
        """It has no places."""
        return 0

    def flush(self) -> None:
        """Nothing waits."""

    def size(self) -> int:
        """What has come."""
        return self._size


class _Writers(WriterFactory):
    def __init__(self, places: dict[str, int], taking: Taking, archive: int) -> None:
        self._places = places
        self._taking = taking
        self._meter = Meter(archive)

    def create(self, filename: str) -> Py7zIO:
        """What is not wanted is read all the same, since all is packed as one."""
        place = self._places.get(filename)
        is_wanted = place is not None and self._taking.wants(place)
        return _Writer(place if is_wanted else None, self._taking, self._meter)


class SevenReader:
    """Over the bytes of one."""

    format = "7z"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def entries(self) -> Sequence[Entry]:
        """As its list has them."""
        with self._opened() as file:
            if file.needs_password():
                raise ToolError(_ENCRYPTED)
            found = list(file.files)
        if len(found) > ENTRIES:
            raise ToolError(f"The archive has more than {ENTRIES:,} entries, which is too many.")
        return [_entry(one) for one in found]

    def pump(self, taking: Taking) -> None:
        """All in one go."""
        places = {
            entry.path: place for place, entry in enumerate(self.entries()) if entry.kind == "file"
        }
        with self._opened() as file:
            file.extract(factory=_Writers(places, taking, len(self._data)))

    def _opened(self) -> py7zr.SevenZipFile:
        try:
            return py7zr.SevenZipFile(io.BytesIO(self._data), max_extract_size=UNPACKED)
        except py7zr.PasswordRequired:
            raise ToolError(_ENCRYPTED) from None


def _entry(found: Any) -> Entry:
    mode = (found.posix_mode or 0) & 0o7777
    form = found.st_fmt or 0
    kind = "folder" if found.is_directory else "file"
    if found.is_symlink or found.is_junction:
        kind = "link"
    elif found.is_socket or (form and form not in {stat.S_IFREG, stat.S_IFDIR}):
        kind = "other"
    return Entry(name=found.filename, kind=kind, size=found.uncompressed, mode=mode)
