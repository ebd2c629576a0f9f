"""What is scheduled waits in the open, so that no secret does; and none is on record."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from tests.house import STORE
from tests.tools.asking import failed, opened, told
from toolgate import Toolgate, tool
from toolgate.tools.agent import scheduler

pytestmark = pytest.mark.req("T3")
CANARY = "canary-4711-canary"


@tool(
    effect="idempotent",
    input_schema={
        "type": "object",
        "properties": {"user": {"type": "string"}, "word": {"type": "string", "writeOnly": True}},
        "required": ["user"],
    },
)
def sign_in(user: str, word: str = "") -> dict[str, bool]:
    """Sign in."""
    return {"ok": bool(user or word)}


@asynccontextmanager
async def house(root: Path) -> AsyncGenerator[Toolgate]:
    async with opened(root) as found:
        found.add(sign_in)
        yield found


def _task(**args: str) -> str:
    return orjson.dumps({"tool": "sign_in", "args": args}).decode()


def _on_record(root: Path) -> int:
    """How many rows of the store hold it."""
    with sqlite3.connect(root / STORE) as store:
        tables = [
            name for (name,) in store.execute("select name from sqlite_master where type='table'")
        ]
        rows = [row for name in tables for row in store.execute(f'select * from "{name}"')]  # noqa: S608
    return sum(CANARY in str(row) for row in rows)


async def test_a_call_with_a_secret_is_not_scheduled_and_leaves_no_trace(tmp_path: Path) -> None:
    task = _task(user="ann", word=CANARY)
    async with house(tmp_path) as gate:
        refused = await failed(gate, "scheduler", task=task, schedule="in 5 hours")
        assert refused.error is not None
        assert "secret" in refused.error.message
        assert CANARY not in refused.error.message
        assert (await told(gate, "scheduler_list"))["tasks"] == []
    assert _on_record(tmp_path) == 0


async def test_one_without_is_and_its_agent_reads_what_it_is(tmp_path: Path) -> None:
    async with house(tmp_path) as gate:
        added = await told(gate, "scheduler", task=_task(user="ann"), schedule="in 5 hours")
        assert added["task"] == 'sign_in {"user":"ann"}'
        assert (await told(gate, "scheduler_list"))["tasks"][0]["task"] == added["task"]
        note = await told(gate, "scheduler", task="Water the plants.", schedule="in 5 hours")
        assert note["task"] == "Water the plants."


async def test_without_the_guard_it_would_wait_in_the_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_it_is(_schema: bytes, args: object) -> object:
        return args

    monkeypatch.setattr(scheduler, "without_secrets", as_it_is)
    task = _task(user="ann", word=CANARY)
    async with house(tmp_path) as gate:
        await told(gate, "scheduler", task=task, schedule="in 5 hours")
    assert _on_record(tmp_path) > 0
