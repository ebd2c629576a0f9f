"""Which kind of archive some bytes are, by how they begin; their names say nothing."""

from toolgate.errors import ToolError
from toolgate.tools.archive.flow import Reader
from toolgate.tools.archive.tars import TarReader
from toolgate.tools.archive.zips import ZipReader

_PACKINGS = (
    (b"\x1f\x8b", "gz"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
)
_TAR = slice(257, 262)


def reader(data: bytes) -> Reader:
    """What reads them; `ToolError` where it is none of those that are read."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ZipReader(data)
    if data.startswith(b"7z\xbc\xaf\x27\x1c"):
        from toolgate.tools.archive.sevens import SevenReader  # noqa: PLC0415  its library is an extra

        return SevenReader(data)
    for mark, packing in _PACKINGS:
        if data.startswith(mark):
            return TarReader(data, packing)
    if data[_TAR] == b"ustar":
        return TarReader(data, "")
    raise ToolError(
        "That is no archive that is read here. Those are zip, 7z, tar, and tar packed as gz, bz2, "
        "xz or zst."
    )
