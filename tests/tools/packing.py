"""Archives for tests, made by the standard library and py7zr: good ones, and bent ones."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping

Files = Mapping[str, bytes]


def zipped(files: Files) -> bytes:
    """A zip of plain files."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return raw.getvalue()


def tarred(files: Files, packing: str = "") -> bytes:
    """A tar of plain files, compressed where a packing is named."""
    return tar_of([(_plain(name, content), content) for name, content in files.items()], packing)


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]], packing: str = "") -> bytes:
    """A tar of any members."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return packed(raw.getvalue(), packing)


def packed(content: bytes, packing: str) -> bytes:
    """Compressed, or as it is."""
    import bz2  # noqa: PLC0415  each is used by few tests
    import gzip  # noqa: PLC0415
    import lzma  # noqa: PLC0415

    if packing == "zst":
        from backports import zstd  # noqa: PLC0415  an extra

        return zstd.compress(content)
    ways: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lambda given: lzma.compress(given, preset=1),
    }
    return ways[packing](content)


def sevened(files: Files) -> bytes:
    """A 7z of plain files."""
    import py7zr  # noqa: PLC0415  an extra

    raw = io.BytesIO()
    with py7zr.SevenZipFile(raw, "w") as archive:
        for name, content in files.items():
            archive.writestr(content, name)
    return raw.getvalue()


def _plain(name: str, content: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    return info


WAYS: dict[str, Callable[[Files], bytes]] = {
    "zip": zipped,
    "tar": tarred,
    "tar.gz": lambda files: tarred(files, "gz"),
    "tar.bz2": lambda files: tarred(files, "bz2"),
    "tar.xz": lambda files: tarred(files, "xz"),
    "tar.zst": lambda files: tarred(files, "zst"),
    "7z": sevened,
}
