"""Machine code of our own loops, kept from one process to the next.

What a worker loads it runs, so it counts only as it was compiled before that worker had heard of
any caller, and lies where nobody but us writes. Workers get it over their streams: none of them can
change it for another.
"""

import contextlib
import hashlib
import importlib
import importlib.metadata
import io
import os
import platform
import stat
import sys
import zipfile
from functools import cache
from pathlib import Path

from toolgate.tools.working.parcel import Parcel

# Modules whose loops are compiled when they are imported.
LOOPS = frozenset(
    f"toolgate.tools.native.{name}" for name in ("trajectory", "minimum", "posterior", "sampling")
)
MADE = f"{__name__}:made"
TAKEN = f"{__name__}:taken"
_PLACE = "NUMBA_CACHE_DIR"
_MOST = 16 * 1024 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Compiled:
    """A folder of ours. Where it cannot be had, everything is compiled anew in each process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder / "compiled"

    def read(self, module: str) -> bytes | None:
        """What a module's loops were compiled to by these very versions, on such a machine."""
        if self._folder is None or not self._is_ours(self._folder):
            return None
        with contextlib.suppress(OSError):
            handle = os.open(self._folder / _name(module), os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(handle, "rb") as file:
                about = os.fstat(handle)
                is_ours = about.st_uid == os.geteuid() and not about.st_mode & _OTHERS
                return file.read() if is_ours and about.st_size <= _MOST else None
        return None

    def keep(self, module: str, code: bytes) -> None:
        """For the next process; what was kept of other versions goes."""
        if self._folder is None or not code or len(code) > _MOST:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_ours(self._folder):
                return
            name = _name(module)
            stem = name.partition("-")[0]
            for old in self._folder.glob(f"{stem}-*"):
                old.unlink(missing_ok=True)
            path = self._folder / f"{name}.{os.getpid()}"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(code)
            path.rename(self._folder / name)

    @staticmethod
    def _is_ours(folder: Path) -> bool:
        try:
            about = folder.lstat()
        except OSError:
            return False
        is_private = about.st_uid == os.geteuid() and not about.st_mode & _OTHERS
        return stat.S_ISDIR(about.st_mode) and is_private


def made(*, module: str) -> Parcel:
    """In a worker: compile a module's loops, and give what came of that."""
    if module not in LOOPS:
        raise ValueError(module)
    importlib.import_module(module)
    place, packed = Path(os.environ[_PLACE]), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(place.glob("*/*.nb[ci]")):
            archive.write(path, str(path.relative_to(place)))
    return Parcel(None, packed.getvalue())


def taken(*, data: bytes) -> None:
    """In a worker: have it where the loops look when they are imported."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(os.environ[_PLACE])


def _name(module: str) -> str:
    return f"{module.rpartition('.')[2]}-{_versions()}"


@cache
def _versions() -> str:
    """All that the code depends on: compilers, our sources, and what this machine can do."""
    said = [sys.implementation.cache_tag or "", platform.machine(), _processor()]
    for package in ("numba", "llvmlite", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            said.append(importlib.metadata.version(package))
    native = Path(__file__).parents[1] / "native"
    for path in sorted(native.glob("*.py")):
        about = path.stat()
        said.append(f"{path} {about.st_mtime_ns} {about.st_size}")
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:32]


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return ""
