"""Archives that somebody has bent: each is to be refused as a whole."""

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.tools.packing import packed, tar_of, zipped


def info(name: str, size: int = 0, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def _linked(kind: bytes, to: str) -> bytes:
    """A link, and a file that would be written through it."""
    link = info("way", type=kind, linkname=to)
    return tar_of([(link, b""), (info("way/slipped.txt", 3), b"out")])


def _zip_of(name: str, *, mode: int = 0o100644, content: bytes = b"x") -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        info = zipfile.ZipInfo("placeholder")
        info.filename = name
        info.create_system = 3
        info.external_attr = mode << 16
        archive.writestr(info, content)
    return raw.getvalue()


def _seven(name: str) -> bytes:
    """A 7z whose one entry has another name than its writer would let it have."""
    import py7zr  # noqa: PLC0415  an extra

    raw = io.BytesIO()
    with py7zr.SevenZipFile(raw, "w") as archive:
        archive.set_encoded_header_mode(False)
        archive.writestr(b"out", "x" * len(name))
    data = raw.getvalue().replace(("x" * len(name)).encode("utf-16-le"), name.encode("utf-16-le"))
    offset, size = struct.unpack_from("<QQ", data, 12)
    crc = struct.pack("<I", zlib.crc32(data[32 + offset : 32 + offset + size]))
    start = data[12:28] + crc
    return data[:8] + struct.pack("<I", zlib.crc32(start)) + start + data[32:]


def _seven_of(make: Callable[[Path], None]) -> bytes:
    """A 7z of one thing on the disk, as it is there."""
    import py7zr  # noqa: PLC0415  an extra

    raw = io.BytesIO()
    with TemporaryDirectory() as folder, py7zr.SevenZipFile(raw, "w") as archive:
        make(Path(folder) / "thing")
        archive.write(Path(folder) / "thing", "thing")
    return raw.getvalue()


def _special(path: Path) -> None:
    path.write_bytes(b"x")
    path.chmod(0o4755)


def _chained() -> bytes:
    """A link to what is outside, a link to that link, and a file that would be written by it."""
    first = info("first", type=tarfile.LNKTYPE, linkname="../../outside.txt")
    second = info("second", type=tarfile.LNKTYPE, linkname="first")
    return tar_of([(first, b""), (second, b""), (info("second", 3), b"out")])


def million() -> bytes:
    """A tar of a million entries, in a few megabytes: one piece of it, again and again.

    Its checksum is wrong; who looks at that has unpacked half a gigabyte before.
    """
    pressed = zlib.compressobj(9, zlib.DEFLATED, -15)
    rows = b"".join(info(f"{number:04}").tobuf() for number in range(1_000))
    piece = pressed.compress(rows) + pressed.flush(zlib.Z_FULL_FLUSH)
    end = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    return head + piece * 1_000 + end + struct.pack("<II", 0, len(rows) * 1_000)


def _overlapping() -> bytes:
    """Two entries of the list that are one and the same file."""
    data = zipped({"aaa": bytes(5_000)})
    at = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    row = data[at:end]
    rows = row + row.replace(b"aaa", b"bbb")
    tail = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 2, 2, len(rows), at, 0)
    return data[:at] + rows + tail


def _lying() -> bytes:
    """A zip that says that its file has ten bytes; it has many more."""
    data = bytearray(zipped({"a": bytes(1_000_000)}))
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 10)
    return bytes(data)


def _beyond() -> bytes:
    """A zip whose file is said to begin before the archive does."""
    data = bytearray(zipped({"a": b"content"}))
    end = data.index(b"PK\x05\x06")
    size = struct.unpack_from("<I", data, end + 16)[0]
    struct.pack_into("<I", data, end + 16, size + 100)
    return bytes(data)


def _sparse() -> bytes:
    return tar_of([(info("hole", type=tarfile.GNUTYPE_SPARSE), b"")])


def _negative() -> bytes:
    data = bytearray(tar_of([(info("a", 3), b"abc")]))
    data[124:136] = b"\xff" * 12
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def twice(one: str, other: str) -> bytes:
    return tar_of([(info(one, 1), b"1"), (info(other, 1), b"2")])


def _locked() -> bytes:
    import py7zr  # noqa: PLC0415  an extra

    raw = io.BytesIO()
    with py7zr.SevenZipFile(raw, "w", password="secret", header_encryption=True) as archive:  # noqa: S106
        archive.writestr(b"out", "a.txt")
    return raw.getvalue()


BENT: dict[str, Callable[[], bytes]] = {
    "zip-slip": lambda: zipped({"../slipped.txt": b"out"}),
    "zip-slip, deep": lambda: zipped({"a/b/../../../../slipped.txt": b"out"}),
    "zip-slip, backslash": lambda: _zip_of("..\\slipped.txt"),
    "an absolute name in a zip": lambda: _zip_of("/tmp/slipped.txt"),  # noqa: S108  it is refused
    "a drive": lambda: _zip_of("C:/slipped.txt"),
    "a byte of zero": lambda: zipped({"slipped.txtXpng": b""}).replace(b"tX", b"t\0"),
    "an empty name": lambda: _zip_of(""),
    "a link in a zip": lambda: _zip_of("way", mode=0o120777, content=b"../.."),
    "a device in a zip": lambda: _zip_of("zero", mode=0o020666),
    "set-uid in a zip": lambda: _zip_of("run", mode=0o104755),
    "tar-slip": lambda: tar_of([(info("../slipped.txt", 1), b"x")]),
    "an absolute name in a tar": lambda: tar_of([(info("/slipped.txt", 1), b"x")]),
    "a link, then a file in it": lambda: _linked(tarfile.SYMTYPE, "../.."),
    "an absolute link": lambda: _linked(tarfile.SYMTYPE, "/"),
    "an over-long link": lambda: _linked(tarfile.SYMTYPE, "a/" * 3_000 + ".." * 100),
    "a hard link": lambda: _linked(tarfile.LNKTYPE, "../../outside.txt"),
    "a chain of hard links": _chained,
    "a device": lambda: tar_of([(info("zero", type=tarfile.CHRTYPE, devmajor=1, devminor=5), b"")]),
    "a pipe": lambda: tar_of([(info("pipe", type=tarfile.FIFOTYPE), b"")]),
    "a sparse file": _sparse,
    "set-uid": lambda: tar_of([(info("run", 1, mode=0o4755), b"x")]),
    "set-gid": lambda: tar_of([(info("run", 1, mode=0o2755), b"x")]),
    "a name twice": lambda: twice("a.txt", "a.txt"),
    "a name twice, with a dot": lambda: twice("a.txt", "./a.txt"),
    "names that differ in capitals": lambda: twice("a.txt", "A.TXT"),
    "folders that differ in capitals": lambda: twice("a/x", "A/y"),
    "names that differ in composition": lambda: twice("\u00e9", "e\u0301"),
    "a file and a folder at once": lambda: twice("a", "a/b"),
    "a size below zero": _negative,
    "a 7z that leads out": lambda: _seven("../slipped.txt"),
    "a 7z with an absolute name": lambda: _seven("/slipped.txt"),
    "a link in a 7z": lambda: _seven_of(lambda path: path.symlink_to("/etc")),
    "set-uid in a 7z": lambda: _seven_of(_special),
    "two that overlap": _overlapping,
    "a size that is a lie": _lying,
    "an offset below zero": _beyond,
    "half of a zip": lambda: zipped({"a": bytes(range(256)) * 99})[:200],
    "half of a tar": lambda: tar_of([(info("a", 9_000), bytes(9_000))])[:4_000],
    "half of a gz": lambda: packed(tar_of([(info("a", 9), bytes(9))]), "gz")[:-20],
    "a name that is no text": lambda: tar_of([(info("caf\udce9", 1), b"x")]),
    "a name with signs that are not seen": lambda: zipped({"a\u202etxt.exe": b""}),
    "an encrypted 7z": _locked,
    "rows without end": lambda: zipped({"a": b""}).replace(b"PK\x01\x02", b"PK\x01\x02" * 100_001),
    "too deep": lambda: zipped({"d/" * 40 + "x": b""}),
    "too many": lambda: tar_of([(info(str(n)), b"") for n in range(10_001)]),
}
