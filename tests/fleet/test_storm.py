"""A fleet under load while its parts are killed, stopped, restarted and cut off.

What happened is read from the marks that effects leave, before any answer is believed.
"""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path as Folder
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, NamedTuple

import asyncpg
import pytest

from tests.fleet.nodes import Fleet, walled_database
from tests.fleet.path import Path
from tests.fleet.traffic import Sent, Traffic
from tests.server.serving import COMMAND
from tests.servers.fixtures import needed
from tests.servers.kafka import Kafka
from tests.servers.opa import Opa
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB
from tests.thorough import some
from toolgate.tenancy.keys import Role

SECONDS = float(os.environ.get("TOOLGATE_STORM_SECONDS", some("300", "1800")))
RATE = 200.0
LEASE = 2.0
TOKEN = "TOOLGATE_STORM_SPICEDB"  # noqa: S105  where the token stands, not what it is
NAMES = ("look", "look_later", "mark", "post")
pytestmark = [pytest.mark.req("P6", "D2", "S2", "S3"), pytest.mark.timeout(SECONDS + 400)]
SETTINGS = f"""
[policy]
engine = "opa"
url = "@OPA@"
[relations]
engine = "spicedb"
url = "grpc://@SPICEDB@"
token_env = "{TOKEN}"
[queue]
url = "kafka://@KAFKA@"
lease = {LEASE}
[toolbox]
lease = {LEASE}
[limits]
processes = 4
"""
MODULE = '''\
"""Tools that leave marks."""

import os

FILE = os.open("@MARKS@", os.O_WRONLY | os.O_APPEND)


def look(text: str) -> str:
    return text


def mark(text: str) -> str:
    os.write(FILE, f"{text}\\n".encode())
    return text


def post(account: str, text: str) -> str:
    os.write(FILE, f"{text}\\n".encode())
    return text
'''
_TEXT = "properties: {text: {type: string}}, required: [text]"
_BOTH = "properties: {account: {type: string}, text: {type: string}}, required: [account, text]"
TOOLS = f"""\
tools:
  - name: look
    config: {{module: marking, function: look}}
    effect: pure
    input_schema: {{type: object, {_TEXT}}}
  - name: look_later
    config: {{module: marking, function: look}}
    effect: pure
    execution: queued
    input_schema: {{type: object, {_TEXT}}}
  - name: mark
    config: {{module: marking, function: mark}}
    effect: irreversible
    input_schema: {{type: object, {_TEXT}}}
  - name: post
    config: {{module: marking, function: post}}
    effect: irreversible
    execution: queued
    order_by: account
    input_schema: {{type: object, {_BOTH}}}
"""


class Worker:
    """A real `toolgate worker`, which can be killed, stopped and started anew."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.process = self._started()

    def _started(self) -> "Popen[bytes]":
        with (self._folder / "worker.log").open("ab") as log:
            process = Popen(
                [*COMMAND, "worker"], cwd=self._folder, stdin=DEVNULL, stdout=PIPE, stderr=log
            )
        assert process.stdout is not None
        assert process.stdout.readline(), (self._folder / "worker.log").read_text("utf-8")
        return process

    def anew(self) -> None:
        self.process.kill()
        self._gone()
        self.process = self._started()

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self._gone()

    def _gone(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait(30)


class World(NamedTuple):
    """All of it."""

    fleet: Fleet
    workers: list[Worker]
    postgres: Postgres
    redis: Redis
    kafka: Kafka
    path: Path
    # For who looks past row security.
    owner: str
    key: str


@contextmanager
def _world(root: Folder) -> Generator[World]:
    """As `make fleet` has it: a policy server, a relations server, a role that rows hide from."""
    with ExitStack() as stack:
        postgres = stack.enter_context(needed(Postgres))
        redis = stack.enter_context(needed(Redis))
        kafka = stack.enter_context(needed(Kafka))
        opa = stack.enter_context(needed(Opa))
        spicedb = stack.enter_context(needed(SpiceDB))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(TOKEN, spicedb.token)
        path = stack.enter_context(Path(postgres.port))
        store, owner = walled_database(postgres)
        aside = store.replace(f":{postgres.port}/", f":{path.port}/")
        words = {"@KAFKA@": kafka.address, "@OPA@": opa.url, "@SPICEDB@": spicedb.address}
        settings = SETTINGS
        for word, value in words.items():
            settings = settings.replace(word, value)
        fleet = Fleet(
            root,
            nodes=2,
            store=store,
            redis=redis.url,
            files={"tools/marking.yaml": TOOLS, "marking.py": MODULE},
            settings=settings,
        )
        for number in range(2):
            # Four processes, and whoever looks, at a server with a hundred places.
            file = fleet.folder(number) / "toolgate.toml"
            text = file.read_text("utf-8")
            more = '[store]\nconnections = 18\nrow_security = "require"'
            file.write_text(text.replace("[store]", more), "utf-8")
        # The second of each reaches the store by a path that can be cut.
        shutil.copytree(fleet.folder(0), root / "work0")
        toml = fleet.folder(1) / "toolgate.toml"
        toml.write_text(toml.read_text("utf-8").replace(store, aside), "utf-8")
        shutil.copytree(fleet.folder(1), root / "work1")
        stack.enter_context(fleet)
        key = asyncio.run(_key(fleet))
        workers = [Worker(root / f"work{number}") for number in range(2)]
        for worker in workers:
            stack.callback(worker.end)
        yield World(fleet, workers, postgres, redis, kafka, path, owner, key)


async def _key(fleet: Fleet) -> str:
    async with fleet.gate() as gate:
        await gate.tenancy.set_agent("acme", "clerk")
        mine = [f"tool:{name}#executor@agent:clerk" for name in NAMES]
        await gate.tenancy.relate("acme", add=mine)
        return (await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk")).secret


Fault = Callable[[World], Any]


async def _paused(worker: Worker) -> None:
    """Past its lease: others take what it has, and it finds that out when it goes on."""
    worker.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(3 * LEASE)
    worker.process.send_signal(signal.SIGCONT)


async def _cut(path: Path) -> None:
    path.cut()
    await asyncio.sleep(3)
    path.heal()


async def _restarted(server: Any) -> None:
    await asyncio.to_thread(server.stop)
    await asyncio.sleep(1)
    await asyncio.to_thread(server.start)


async def _node_killed(world: World) -> None:
    world.fleet.nodes[0].kill()
    await asyncio.sleep(1)
    await asyncio.to_thread(world.fleet.restart, 0)


FAULTS: dict[str, Fault] = {
    "a worker is killed": lambda world: asyncio.to_thread(world.workers[0].anew),
    "a node is killed": _node_killed,
    "a worker stands still": lambda world: _paused(world.workers[1]),
    "PostgreSQL restarts": lambda world: _restarted(world.postgres),
    "the path to the store is cut": lambda world: _cut(world.path),
    "Redis restarts": lambda world: _restarted(world.redis),
    "Kafka restarts": lambda world: _restarted(world.kafka),
}


def test_no_effect_is_lost_or_doubled_whatever_breaks(tmp_path: Folder) -> None:
    with _world(tmp_path) as world:
        traffic = Traffic(world.fleet.balancer.url, world.key, RATE)
        unknown = asyncio.run(_stormed(world, traffic))
        marks = world.fleet.marks.read_text("utf-8").split()
        _check(traffic.effects, marks, unknown)
        # While parts are away callers hold back; and in CI other tests have the cores, too.
        assert traffic.offered > some(0.1, 0.75) * RATE, f"{traffic.offered:.0f} a second were made"


async def _stormed(world: World, traffic: Traffic) -> set[str]:
    """The keys of calls whose end nobody saw. What a thread of this loop started ends with it."""
    calling = asyncio.create_task(traffic.run())
    pause = SECONDS / (2 * len(FAULTS) + 1)
    for _ in range(2):
        for fault in FAULTS.values():
            await asyncio.sleep(pause)
            await fault(world)
    await asyncio.sleep(pause)
    traffic.over = True
    await calling
    await _settled(world)
    ended = await traffic.tail(100)
    assert ended == ["success"] * 100, (ended, traffic.statuses)
    await _settled(world)
    return await _unknown(world)


async def _settled(world: World) -> None:
    """No row is stuck: neither in the queue, nor untold, nor on record."""
    line: Any = await asyncpg.connect(world.owner)
    try:
        async with asyncio.timeout(120):
            while await line.fetchval(  # noqa: ASYNC110  a database tells nobody
                "SELECT (SELECT count(*) FROM queue "
                "WHERE state NOT IN ('done', 'dead') OR told = 0) + "
                "(SELECT count(*) FROM tool_execution_log "
                "WHERE state IN ('received', 'reserved', 'claimed', 'started'))"
            ):
                await asyncio.sleep(0.5)
        dead = "SELECT array_agg(concat_ws(' ', tool_name, attempts, why)) FROM queue "
        assert await line.fetchval(f"{dead} WHERE state = 'dead'") is None
    finally:
        await line.close()


async def _unknown(world: World) -> set[str]:
    """Keys of calls whose end nobody saw: on record as that, for an operator to settle."""
    line: Any = await asyncpg.connect(world.owner)
    try:
        rows = await line.fetch("SELECT once_key FROM tool_execution_log WHERE state = 'unknown'")
        return {row[0] for row in rows}
    finally:
        await line.close()


def _check(effects: list[Sent], marks: list[str], unknown: set[str]) -> None:
    assert len(effects) > SECONDS * 10, "there was not much to see"
    assert len(marks) == len(set(marks)), "an effect was doubled"
    happened = set(marks)
    for sent in effects:
        assert sent.status, f"{sent.key} was never answered"
        # Who was told that nobody knows asks later; that it was not doubled is told above.
        if sent.status == "success":
            assert sent.key in happened, f"{sent.key} was acknowledged, and did not happen"
        elif sent.status == "queued":
            assert sent.key in happened or sent.key in unknown, f"{sent.key} is lost"
    answers = Counter(sent.status for sent in effects)
    assert answers["unknown"] < len(effects) / 20, answers
    assert len(unknown) < len(effects) / 20, "too many ended unknown to tell"
    for account in {key.partition("-")[0] for key in happened if key.startswith("a")}:
        order = [int(key.partition("-")[2]) for key in marks if key.startswith(f"{account}-")]
        assert order == sorted(order), f"{account} was overtaken"
