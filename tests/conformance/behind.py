"""The other server as a process of its own, and a real `toolgate serve` in front of it."""

import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.server.serving import Serving
from tests.servers.process import LOOPBACK, AbsentError, Process

ROOT = Path(__file__).resolve().parents[2]
# Nobody is asked: an operator has looked at these tools, and says that they only read.
OVERLAY = 'tools:\n  "*": {effect: pure}\n'


class Other(Process):
    """`python -m tests.conformance.other`."""

    def __init__(self, *more: str) -> None:
        super().__init__("other")
        self._more = more

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/mcp"

    def command(self) -> Sequence[str]:
        script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
        run = "import runpy; runpy.run_module('tests.conformance.other', run_name='__main__')"
        return sys.executable, "-W", "ignore", "-c", script + run, str(self.port), *self._more

    def is_ready(self) -> bool:
        with socket.create_connection((LOOPBACK, self.port)):
            return True


class Given(Other):
    """The server of the given fixtures, on another framework; beside this checkout, or absent."""

    def __init__(self) -> None:
        super().__init__()
        self._script = ROOT.parent / "shared" / "conformance" / "fixtures_server.py"
        if not self._script.is_file():
            raise AbsentError("no ../shared/conformance beside this checkout")

    def command(self) -> Sequence[str]:
        return sys.executable, "-W", "ignore", str(self._script), str(self.port)


def settings(other: Other, **more: str) -> str:
    """Its part of toolgate.toml; what it asks is put to the caller's client."""
    lines = {
        "url": f'"{other.url}"',
        "prefix": '""',
        "overlay": '"overlay.yaml"',
        "pin": "false",
        "elicitation": "true",
        "sampling": "true",
        "roots": "true",
        **more,
    }
    written = "".join(f"{name} = {value}\n" for name, value in lines.items())
    return f"[mcp.servers.other]\n{written}"


def gateway(root: Path, other: Other, **more: str) -> Serving:
    """Nothing in it but what the other server has."""
    (root / "toolgate.toml").write_text(f"[tools]\nbuiltin = []\n\n{settings(other, **more)}")
    (root / "overlay.yaml").write_text(OVERLAY)
    return Serving(root)
