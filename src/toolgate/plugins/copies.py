"""Copies of what was agreed to, for programs: a plugin's own folder may change at any moment.

`plugin_data/.agreed/FINGERPRINT/NAME` holds the files of one version and nothing else. It is made
from the bytes that the fingerprint is over, and looked at before it is used again.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from toolgate.plugins.package import LINK, Package, Refused, taken

AGREED = ".agreed"
# What a program may have been started from lately stays.
_KEPT = 8
# Which bits a file had is not agreed to: all can be read and run, and none be written.
_FILE = 0o555
_FOLDER = 0o755


def copied(package: Package, data: Path) -> Path:
    """Where this version lies, and will not change; `data` is the folder of all plugins' data."""
    home = data / AGREED
    name = package.root.name
    place = home / package.fingerprint / name
    try:
        if not _is(place, package):
            shutil.rmtree(place, ignore_errors=True)
            _make(place, package)
        os.utime(place)
        _forget_old(home, name)
    except OSError as error:
        raise Refused(f"its files cannot be copied ({error.strerror})") from None
    return place.resolve()


def _is(place: Path, package: Package) -> bool:
    try:
        return place.is_dir() and taken(place).fingerprint == package.fingerprint
    except Refused:
        return False


def _make(place: Path, package: Package) -> None:
    """Under another name first: who finds it finds all of it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    spare = place.parent / f".{secrets.token_hex(8)}"
    try:
        spare.mkdir(_FOLDER)
        for path, raw in package.files.items():
            name, _, leads = path.partition(LINK)
            file = spare / name
            file.parent.mkdir(_FOLDER, parents=True, exist_ok=True)
            if leads:
                file.symlink_to(os.path.relpath(leads, Path(name).parent))
                continue
            with open(file, "xb", opener=_opened) as made:
                made.write(raw)
            file.chmod(_FILE)
        try:
            spare.rename(place)
        except OSError:
            # Another process was faster, with the same bytes.
            if not _is(place, package):
                raise
    finally:
        shutil.rmtree(spare, ignore_errors=True)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _forget_old(home: Path, name: str) -> None:
    found = sorted(_of(home, name), key=lambda one: one[0])
    for _when, place in found[:-_KEPT]:
        shutil.rmtree(place.parent, ignore_errors=True)


def _of(home: Path, name: str) -> Iterator[tuple[int, Path]]:
    for place in home.glob(f"*/{name}"):
        try:
            yield place.stat().st_mtime_ns, place
        except OSError:
            continue
