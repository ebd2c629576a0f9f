"""A PostgreSQL on which the script of the compose file has run."""

import os
import shutil
import subprocess
from collections.abc import Mapping

from tests.deploy.linters import DEPLOY
from tests.servers.postgres import IN_WHEEL, Postgres
from tests.servers.process import LOOPBACK, absent, services


class Prepared(Postgres):
    """As its image makes it: the superuser is called postgres, and has run the script."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        super().__init__()
        self._secrets = secrets
        brought = os.pathsep.join([str(services() / "postgres" / IN_WHEEL), os.environ["PATH"]])
        psql = shutil.which("psql", path=brought)
        if psql is None:
            raise absent("psql")
        self._psql = psql

    def start(self) -> None:
        """Once: nothing stops it in between."""
        super().start()
        self.told("toolgate", "postgres", "CREATE ROLE other SUPERUSER LOGIN")
        self.told("other", "postgres", "ALTER ROLE toolgate RENAME TO postgres")
        environment = {
            "PATH": os.pathsep.join([os.path.dirname(self._psql), os.environ["PATH"]]),  # noqa: PTH120
            "PGHOST": LOOPBACK,
            "PGPORT": str(self.port),
            "POSTGRES_USER": "postgres",
            **self._secrets,
        }
        script = DEPLOY / "compose" / "postgres.sh"
        subprocess.run(["sh", script], env=environment, check=True, capture_output=True)

    def url(self, role: str, database: str = "toolgate") -> str:
        """Where a role finds its database."""
        word = self._secrets[f"{role.rpartition('_')[2].upper()}_PASSWORD"]
        return f"postgresql://{role}:{word}@{LOOPBACK}:{self.port}/{database}"

    def told(self, role: str, database: str, statement: str) -> str:
        """What the server answers to a role, or why it does not."""
        place = [f"--host={LOOPBACK}", f"--port={self.port}", f"-U{role}", f"-d{database}"]
        done = subprocess.run(
            [self._psql, "--no-psqlrc", "--quiet", "-At", *place, f"-c{statement}"],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr
