"""Archives that the cases of the archive tools read, in every format, and some that are traps."""

import io
import tarfile
import zipfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.tools.packing import WAYS, packed, tar_of

FILES = {
    "README.md": b"# Read me\nThe answer is 42.\n",
    "src/main.py": b"ANSWER = 42\nprint('The Answer is', ANSWER)\n",
    "src/empty.txt": b"",
    "data/picture.bin": bytes(range(256)) * 4,
    "data/caf\u00e9.txt": "na\u00efve\n".encode(),
}


async def prepare(root: Path, _settings: dict[str, Any], _stack: AsyncExitStack) -> dict[str, str]:
    """Below `files/archive`: one of each format, and those that are to be refused."""
    home = root / "files" / "archive"
    home.mkdir()
    for ending, pack in WAYS.items():
        (home / f"good.{ending}").write_bytes(pack(FILES))
    (home / "not.zip").write_bytes(b"PK\x03\x04 and nothing that follows")
    (home / "text.zip").write_text("This is no archive.\n")
    (home / "note.gz").write_bytes(packed(b"a note, and no tar\n" * 100, "gz"))
    (home / "slip.zip").write_bytes(WAYS["zip"]({"ok.txt": b"ok", "../../slipped.txt": b"out"}))
    (home / "twice.zip").write_bytes(_twice())
    link = tarfile.TarInfo("way")
    link.type, link.linkname = tarfile.SYMTYPE, "../.."
    (home / "link.tar").write_bytes(tar_of([(link, b"")]))
    (home / "bomb.zip").write_bytes(WAYS["zip"]({"zeros": bytes(30_000_000)}))
    (home / "taken").mkdir()
    return {}


def _twice() -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("Same.txt", b"one")
        archive.writestr("same.txt", b"two")
    return raw.getvalue()
