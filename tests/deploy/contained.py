"""A command as a container would run it: nothing is writable but /tmp, no rights, another user.

What holds here is that it gets along with that; no engine of containers is asked.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.servers.sandboxes import bubblewrap

# As the image and the manifests say.
_USER = "10001"


def contained(command: Sequence[str], *, shown: Sequence[Path], folder: Path) -> list[str]:
    """The words that start it; `shown` is what it finds although it lies below /tmp."""
    found = [word for path in shown for word in ("--ro-bind", str(path), str(path))]
    return [
        *(
            bubblewrap(),
            "--die-with-parent",
            "--unshare-user",
            "--uid",
            _USER,
            "--gid",
            _USER,
            "--cap-drop",
            "ALL",
        ),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/tmp", *found),  # noqa: S108
        *("--chdir", str(folder), "--", *command),
    ]


def inside(pid: int) -> int:
    """The command's own process: who started it waits for its end, and ends as it does."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8"))
