"""Files that the cases of the file tools read, and links that lead where nobody may follow."""

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

OUTSIDE = "what no tool is to read"


async def prepare(root: Path, _settings: dict[str, Any], _stack: AsyncExitStack) -> dict[str, str]:
    """Texts of many kinds below `files/system`, a secret beside the root, and traps."""
    home = root / "files" / "system"
    (home / "deep" / "er").mkdir(parents=True)
    (home / "hello.txt").write_text("Hello, world.\nThe second line.\nThe third.\n")
    (home / "empty.txt").write_bytes(b"")
    (home / "mark.txt").write_bytes("\ufeffmärk".encode())
    (home / "sixteen.txt").write_bytes("wide é 😀".encode("utf-16"))
    (home / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    (home / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (home / "emoji.txt").write_text("ab😀cd")
    (home / "large.txt").write_text("0123456789abcde\n" * 125_000)
    (home / "deep" / "note.md").write_text("# Note\n")
    (home / "deep" / "er" / "code.py").write_text("print(1)\n")
    (home / "inside").symlink_to("deep/note.md")
    (root / "outside.txt").write_text(OUTSIDE)
    (root / "files-more").mkdir()
    (root / "files-more" / "sibling.txt").write_text(OUTSIDE)
    (home / "leak").symlink_to("../../outside.txt")
    (home / "leak-absolute").symlink_to(root / "outside.txt")
    (home / "leak-folder").symlink_to("../..")
    (home / "loop").symlink_to("loop")
    os.mkfifo(home / "pipe")
    return {"outside": OUTSIDE}
