"""Who listens on a port, read from the kernel's tables.

An answer on a port proves little alone: another worker may have taken the port first.
"""

from pathlib import Path

LISTEN = "0A"


def listens(pid: int, port: int) -> bool:
    held = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    return any(f"socket:[{inode}]" in held for inode in _listening(port))


def _listening(port: int) -> list[str]:
    found: list[str] = []
    # A Java server on 127.0.0.1 is in the second table, as a mapped address.
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == LISTEN and int(local.rpartition(":")[2], 16) == port:
                found.append(rest[5])
    return found
