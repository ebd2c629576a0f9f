"""A real SpiceDB that keeps everything in memory: an outage loses what was written."""

from collections.abc import Sequence
from secrets import token_hex

from tests.servers.health import is_healthy
from tests.servers.process import LOOPBACK, Process, absent, free_port, services


class SpiceDB(Process):
    def __init__(self) -> None:
        self._program = services() / "bin" / "spicedb"
        if not self._program.is_file():
            raise absent("SpiceDB")
        super().__init__("SpiceDB")
        self.token = token_hex()
        self._http_port = free_port()

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def command(self) -> Sequence[str]:
        return [
            str(self._program),
            "serve",
            "--datastore-engine=memory",
            f"--grpc-addr={self.address}",
            f"--grpc-preshared-key={self.token}",
            # Its health page is how readiness is asked; tests talk gRPC.
            "--http-enabled",
            f"--http-addr={LOOPBACK}:{self._http_port}",
            "--metrics-enabled=false",
            "--telemetry-endpoint=",
            "--skip-release-check",
            "--log-level=warn",
        ]

    def is_ready(self) -> bool:
        return is_healthy(self._http_port, "/healthz")
