"""Takes the lock of a SQLite file again and again: `python -m tests.once.locker FILE FOLDER`.

It keeps the lock as long as `shut` is in the folder, and ends when `over` is.
"""

import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path


def main(file: str, folder: Path) -> None:
    with closing(sqlite3.connect(file, timeout=60, isolation_level=None)) as connection:
        while not (folder / "over").exists():
            connection.execute("BEGIN IMMEDIATE")
            (folder / f"began-{os.getpid()}").touch()
            time.sleep(0.01)
            while (folder / "shut").exists():
                (folder / "locked").touch()
                time.sleep(0.01)
            connection.execute("COMMIT")
            # Else it would have it again before anybody else looks.
            time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
