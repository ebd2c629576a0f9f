"""`toolgate doctor --fleet`: whether what the settings name can be shared, and what to do."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from tests.fleet.nodes import made_database
from tests.house import ME, STORE
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres
from tests.servers.process import free_port
from tests.servers.redis import Redis
from toolgate import Toolgate, clock

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
    assert "300 places" in told["fleet store"]["says"]
    assert told["fleet cache"]["fine"]
    assert not told["fleet limits"]["fine"]
    assert "[limits] processes" in told["fleet limits"]["says"]
    assert told["broker"]["says"], "its topics are not there, or another test has made them"
    words["kafka"] = f"127.0.0.1:{free_port()}"
    (tmp_path / "toolgate.toml").write_text(SETTINGS.format(**words), "utf-8")
    away = found(run)["broker"]
    assert not away["fine"]
    assert "no broker answers" in away["says"]


def test_a_cache_that_does_not_answer_bears_no_fleet(run: Run, tmp_path: Path) -> None:
    toml = f'[cache]\nurl = "redis://127.0.0.1:{free_port()}"\n[limits]\nprocesses = 3\n'
    (tmp_path / "toolgate.toml").write_text(toml, "utf-8")
    told = found(run)
    assert not told["fleet cache"]["fine"]
    assert told["cache"]["says"] == f"redis: {told['fleet cache']['says']}"
    assert told["fleet limits"]["fine"]
    assert "1/3" in told["fleet limits"]["says"]


def test_topics_that_are_missing_are_told_with_who_makes_them(
    run: Run, tmp_path: Path, kafka: Kafka
) -> None:
    name = uuid4().hex
    queue = f'[queue]\nurl = "kafka://{kafka.address}"\n[queue.topics]\nrequests = "{name}"\n'
    for create, says in {
        "true": f"no topic '{name}'",
        "false": "queue.topics.create is off, so nobody makes it: make it with 12 partitions",
    }.items():
        (tmp_path / "toolgate.toml").write_text(f"{queue}create = {create}\n", "utf-8")
        told = found(run)["broker"]
        assert not told["fine"]
        assert says in told["says"]
        assert "\n" not in told["says"]
        assert ("the next node or worker that starts makes it" in told["says"]) is (
            create == "true"
        )


WORK = """\
tools:
  - name: work
    config: {module: json, function: loads}
    execution: queued
    effect: pure
    input_schema: {type: object, properties: {s: {type: string}}}
"""


async def queued(folder: Path, stage: str) -> None:
    """A call of 90 seconds ago, and nobody who works."""
    async with Toolgate.open(folder / "toolgate.toml", scheduled=False) as gate:
        output = await gate.call("work", {"s": "1"}, caller=ME, wait_s=0)
        assert output.status == "queued"
    due_ns = clock.unix_ns() + 60_000_000_000 * (1 if stage == "taken" else -1)
    with closing(sqlite3.connect(folder / STORE)) as store, store:
        store.execute(
            "UPDATE queue SET state = ?, due_ns = ?, queued_ns = queued_ns - 90000000000",
            (stage.partition(" ")[0], due_ns),
        )


@pytest.mark.parametrize("stage", ["waiting", "sent", "taken", "taken and lost"])
def test_the_oldest_call_is_told_whichever_way_it_waits(
    run: Run, tmp_path: Path, stage: str
) -> None:
    (tmp_path / "toolgate.toml").write_text('[queue]\nwork = "never"\n', "utf-8")
    write_tools(tmp_path, WORK)
    asyncio.run(queued(tmp_path, stage))
    shown, told = run("queue", "show").stdout, found(run)["queue"]
    is_held = stage == "taken"
    assert re.search(rf"oldest      9\d s, held by {'a' if is_held else 'no'} worker\n", shown)
    assert ("No worker has any of them now" in shown) is (not stage.startswith("taken"))
    assert told["fine"] is is_held
    assert ("is a worker there?" in told["says"]) is (not is_held)


def test_a_server_is_asked_without_it(run: Run) -> None:
    wrong = run("doctor", "--fleet", "--url", "http://127.0.0.1:1")
    assert wrong.exit_code == 2
    assert "leave --url out" in wrong.stderr
