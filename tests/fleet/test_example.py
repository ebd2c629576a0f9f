"""The fleet that one command starts: it comes up, answers, and leaves nothing behind."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.fixtures import needed
from tests.servers.kafka import Kafka
from tests.servers.opa import Opa
from tests.servers.postgres import Postgres
from tests.servers.process import ROOT
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB


@pytest.mark.req("P6", "D2", "G7")
@pytest.mark.timeout(300)
def test_one_command_starts_a_fleet_and_stops_it() -> None:
    for kind in (Postgres, Redis, Kafka, Opa, SpiceDB):
        needed(kind)
    ran = subprocess.run(
        [sys.executable, "-m", "examples.fleet", "--once"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    for tool in ("quote", "report", "charge"):
        assert f"{tool}: success" in ran.stdout, ran.stdout
    [books] = re.findall(r"cat (\S+)/books\.txt", ran.stdout)
    assert not Path(books).exists(), "its folder is gone with it"
