"""The files that the examples of tools name, as somebody would have them."""

import base64
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.tools.packing import WAYS

_REPORT = {
    "README.md": b"# Report\n\nSales rose by a tenth.\n",
    "figures.csv": b"year,sales\n2026,11\n",
}
_BACKUP = {"docs/plan.md": b"# Plan\n", "docs/notes.md": b"- call Ann\n", "data/rows.csv": b"a,b\n"}
_SOURCE = {"app/client.py": b"timeout = 10\n", "app/main.py": b"from app.client import timeout\n"}
_LOGO = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def prepare(root: Path, _settings: dict[str, Any], _stack: AsyncExitStack) -> dict[str, str]:
    """Notes, logs, a picture, a little program, and archives of such."""
    home = root / "files"
    for folder in ("notes", "logs", "downloads", "src"):
        (home / folder).mkdir(exist_ok=True)
    (home / "notes" / "today.md").write_text("# Today\n\n- send the report\n- call Ann\n")
    lines = [f"2026-11-16T08:{number // 60:02}:{number % 60:02} worked\n" for number in range(200)]
    (home / "logs" / "app.log").write_text("".join(lines))
    (home / "logo.png").write_bytes(base64.b64decode(_LOGO))
    (home / "src" / "main.py").write_text("print('hello')\n")
    (home / "downloads" / "report.zip").write_bytes(WAYS["zip"](_REPORT))
    (home / "backup.tar.gz").write_bytes(WAYS["tar.gz"](_BACKUP))
    (home / "src.tar.xz").write_bytes(WAYS["tar.xz"](_SOURCE))
    return {}
