"""A process that was told to end takes nothing on: others do, and what it runs comes to its end."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.cli.test_drain import listens
from tests.house import ME, STORE, until
from tests.server.serving import Answer, Serving
from toolgate import Toolgate
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Settings

pytestmark = pytest.mark.req("S3", "V5")
MODULE = '''\
"""A tool that says when it has begun, and waits to be let go on."""

import asyncio
from pathlib import Path


async def work(key: str) -> str:
    Path(key).touch()
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    return key
'''
SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}}
KINDS = {"put": {"effect": "idempotent"}, "later": {"effect": "idempotent", "execution": "queued"}}
TOOLS = {
    "tools": [
        {
            "name": name,
            "config": {"module": "resting", "function": "work"},
            "input_schema": SCHEMA,
            **fields,
        }
        for name, fields in KINDS.items()
    ]
}
# A look for what is lost comes three times in that time, and so does the renewal of what runs.
SETTINGS = "[toolbox]\nlease = 1\n"
NEVER = 2**62


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "resting.json").write_text(json.dumps(TOOLS), "utf-8")
    (tmp_path / "resting.py").write_text(MODULE, "utf-8")
    (tmp_path / "toolgate.toml").write_text(SETTINGS, "utf-8")
    return tmp_path


def asked(root: Path, question: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(root / STORE, timeout=20)) as connection, connection:
        return connection.execute(question, values).fetchall()


def fence(root: Path, key: str) -> object:
    found = asked(root, "SELECT fence FROM tool_execution_log WHERE args = ?", f'{{"key":"{key}"}}')
    return found[0][0] if found else None


def lease(root: Path, key: str) -> object:
    question = "SELECT lease_ns FROM tool_execution_log WHERE args = ?"
    return asked(root, question, f'{{"key":"{key}"}}')[0][0]


def put(server: Serving, key: str) -> "asyncio.Task[Answer]":
    body = {"tool": "put", "args": {"key": key}, "idempotency_key": key}
    agent = server.greeting["keys"]["agent"]
    asking = asyncio.to_thread(server.ask, "POST", "/v1/call", key=agent, body=body)
    return asyncio.create_task(asking)


async def leave_lost(root: Path) -> str:
    """A call whose owner was killed, and that nobody takes for lost yet; the agent's key."""
    server = Serving(root)
    calling = put(server, "lost")
    await until((root / "lost").exists)
    server.process.kill()
    server.process.wait()
    server.stop()
    await asyncio.gather(calling, return_exceptions=True)
    asked(root, "UPDATE tool_execution_log SET lease_ns = ?", NEVER)
    return server.greeting["keys"]["agent"]


async def renewed(root: Path, key: str, times: int) -> None:
    """As often as this its owner has said that it is there: it has looked for lost ones, too."""
    for _ in range(times):
        before = lease(root, key)
        await until(lambda before=before: lease(root, key) != before)


async def queue(root: Path, key: str) -> str:
    """From a node that runs no queued calls itself; the call's id."""
    settings = Settings(root=root, queue=Fleet(work="never"))
    async with Toolgate.open(settings, scheduled=False) as gate:
        output = await gate.call("later", {"key": key}, caller=ME, wait_s=0)
        assert output.status == "queued", output
        return output.call_id


def stage(root: Path, call_id: str) -> object:
    return asked(root, "SELECT state FROM queue WHERE call_id = ?", call_id)[0][0]


@contextmanager
def working(root: Path) -> Generator[subprocess.Popen[bytes]]:
    """A `toolgate worker` that takes calls."""
    with subprocess.Popen(
        [sys.executable, "-c", "from toolgate.cli.main import main; main()", "worker", "--json"],
        cwd=root,
        stdout=subprocess.PIPE,
        env=os.environ,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"{", "it is ready"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("told_to_end", [True, False], ids=["drains", "works"])
async def test_what_is_lost_or_queued_is_taken_on_unless_the_server_was_told_to_end(
    folder: Path, *, told_to_end: bool
) -> None:
    key = await leave_lost(folder)
    with Serving(folder) as server:
        server.greeting["keys"] = {"agent": key}
        running = put(server, "runs")
        await until((folder / "runs").exists)
        if told_to_end:
            server.process.send_signal(signal.SIGTERM)
            await until(lambda: not listens(server.port))
        queued = await queue(folder, "later")
        asked(folder, "UPDATE tool_execution_log SET lease_ns = 1 WHERE lease_ns = ?", NEVER)
        if told_to_end:
            await renewed(folder, "runs", 4)
            assert (fence(folder, "lost"), stage(folder, queued)) == (1, "waiting")
        else:
            await until(lambda: (folder / "later").exists() and fence(folder, "lost") == 2)
        assert server.process.poll() is None
        (folder / "go").touch()
        answer = await running
        assert (answer.status, answer.body["status"]) == (200, "success"), "it had begun"
        if not told_to_end:
            server.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.process.wait, 40) == 0


@pytest.mark.parametrize("told_to_end", [True, False], ids=["drains", "works"])
async def test_what_is_lost_is_taken_over_unless_the_worker_was_told_to_end(
    folder: Path, *, told_to_end: bool
) -> None:
    await leave_lost(folder)
    with working(folder) as process:
        running = await queue(folder, "runs")
        await until((folder / "runs").exists)
        if told_to_end:
            process.send_signal(signal.SIGTERM)
        after = await queue(folder, "after")
        asked(folder, "UPDATE tool_execution_log SET lease_ns = 1 WHERE lease_ns = ?", NEVER)
        if told_to_end:
            await renewed(folder, "runs", 4)
            assert (fence(folder, "lost"), stage(folder, after)) == (1, "waiting")
        else:
            await until(lambda: (folder / "after").exists() and fence(folder, "lost") == 2)
        assert process.poll() is None
        (folder / "go").touch()
        await until(lambda: stage(folder, running) == "done")
        if not told_to_end:
            process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 40) == 0
