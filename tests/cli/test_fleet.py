"""`toolgate doctor --fleet`: whether what the settings name can be shared, and what to do."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, as_json
from tests.fleet.nodes import made_database
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres
from tests.servers.process import free_port
from tests.servers.redis import Redis

pytestmark = pytest.mark.req("P6", "D2", "V5")
SETTINGS = """\
[store]
url = "{store}"
[cache]
url = "{redis}"
[queue]
url = "kafka://{kafka}"
[tools]
builtin = ["echo"]
"""


def found(run: Run, *more: str) -> dict[str, dict[str, Any]]:
    """By part."""
    return {one["part"]: one for one in as_json(run("doctor", "--fleet", "--json", *more))}


def test_one_machine_is_told_what_several_would_need(run: Run) -> None:
    told = found(run)
    assert not told["fleet store"]["fine"]
    assert "postgresql://" in told["fleet store"]["says"]
    assert not told["fleet cache"]["fine"]
    assert told["broker"]["fine"]
    assert told["queue"] == {"part": "queue", "fine": True, "says": "0 wait, 0 are under way"}


def test_what_is_shared_is_looked_at_and_nothing_is_made(
    run: Run, tmp_path: Path, postgres: Postgres, redis_server: Redis, kafka: Kafka
) -> None:
    store = made_database(postgres)
    words = {"store": store, "redis": redis_server.url, "kafka": kafka.address}
    (tmp_path / "toolgate.toml").write_text(SETTINGS.format(**words), "utf-8")
    told = found(run)
    assert told["fleet store"]["fine"]
    assert "100 places" in told["fleet store"]["says"]
    assert told["fleet cache"]["fine"]
    assert told["broker"]["says"], "its topics are not there, or another test has made them"
    words["kafka"] = f"127.0.0.1:{free_port()}"
    (tmp_path / "toolgate.toml").write_text(SETTINGS.format(**words), "utf-8")
    away = found(run)["broker"]
    assert not away["fine"]
    assert "no broker answers" in away["says"]


def test_a_server_is_asked_without_it(run: Run) -> None:
    wrong = run("doctor", "--fleet", "--url", "http://127.0.0.1:1")
    assert wrong.exit_code == 2
    assert "leave --url out" in wrong.stderr
