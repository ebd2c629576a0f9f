"""A real Open Policy Agent, empty: a test puts the policy that it asks about."""

from collections.abc import Sequence

from tests.servers.health import is_healthy
from tests.servers.process import LOOPBACK, Process, absent, services


class Opa(Process):
    def __init__(self) -> None:
        self._program = services() / "bin" / "opa"
        if not self._program.is_file():
            raise absent("OPA")
        super().__init__("OPA")

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def command(self) -> Sequence[str]:
        serve = [str(self._program), "run", "--server", f"--addr={LOOPBACK}:{self.port}"]
        return [*serve, "--log-level=error", "--skip-version-check"]

    def is_ready(self) -> bool:
        return is_healthy(self.port, "/health")
