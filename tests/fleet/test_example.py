"""The fleet that one command starts: it comes up, answers, and leaves nothing behind."""

import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.servers.fixtures import needed
from tests.servers.kafka import Kafka
from tests.servers.opa import Opa
from tests.servers.postgres import Postgres
from tests.servers.process import ROOT
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB

pytestmark = [pytest.mark.req("P6", "D2", "G7"), pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def servers() -> None:
    """What the fleet starts itself."""
    for kind in (Postgres, Redis, Kafka, Opa, SpiceDB):
        needed(kind)


@contextmanager
def running() -> Generator[str]:
    """What it says once it is up."""
    with subprocess.Popen(
        [sys.executable, "-m", "examples.fleet"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = ""
            for line in process.stdout:
                said += line
                if line.startswith("Ctrl-C"):
                    break
            yield said
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


def test_one_command_starts_a_fleet_and_stops_it() -> None:
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


def test_every_line_that_it_prints_works_as_it_stands(tmp_path: Path) -> None:
    with running() as said:
        [books] = re.findall(r"cat (\S+/books\.txt)", said)
        assert Path(books).read_text("utf-8") == "", "it is there before the first charge"
        lines = [line.strip() for line in said.splitlines() if line.startswith("  ")]
        lines = [line for line in lines if not line.startswith("tail -f")]
        # Elsewhere, and by a plain shell: as whoever reads them has it.
        told = {
            line: subprocess.run(
                ["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            for line in lines
        }
        for line, ran in told.items():
            assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
        found = {
            word: next(ran.stdout for line, ran in told.items() if word in line)
            for word in ("/v1/call", "books.txt", "queue show", "queue dead", "ledger list")
        }
        assert '"status":"success"' in found["/v1/call"]
        assert found["books.txt"] == "a-1 5.0\n"
        assert "waiting     0" in found["queue show"]
        assert "No call is dead" in found["queue dead"]
        assert "charge" in found["ledger list"]
        doctor = next(ran.stdout for line, ran in told.items() if "doctor --fleet" in line)
        assert "ok   broker" in doctor
        assert "BAD" not in doctor
        probes = re.findall(r"http://\S+/readyz", said)
        assert len(probes) == 2
        for probe in probes:
            with urlopen(probe) as answer:  # noqa: S310  it is http, by the pattern above
                assert answer.status == 200
