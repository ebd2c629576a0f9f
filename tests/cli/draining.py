"""A folder whose tools do one thing at the recorder, and are held before or after it."""

import json
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.house import STORE
from tests.once.recorder import ROOT, Recorder
from tests.server.serving import Serving

MODULE = '''\
"""Tools that do one thing at the recorder, and are held before or after it."""

import asyncio
import time
from pathlib import Path

from tests.once.far_side import FarSide

far = None
reaching = asyncio.Lock()


async def effect(tool, key):
    global far
    async with reaching:
        far = far or await FarSide.reach(PORT)
    return (await far.ask(do="effect", tool=tool, key=key))["number"]


async def held():
    while not Path("go").exists():
        await asyncio.sleep(0.02)


async def look(key: str) -> int:
    number = await effect("look", key)
    await held()
    return number


async def put(key: str, hold: str) -> int:
    return await done("put", key, hold)


async def pay(key: str, hold: str) -> int:
    return await done("pay", key, hold)


async def done(tool, key, hold):
    if hold == "before":
        await held()
    number = await effect(tool, key)
    if hold == "after":
        await held()
    return number


def block(key: str) -> str:
    Path(key).touch()
    while not Path("go").exists():
        time.sleep(0.02)
    return "done"
'''
TEXT = {"type": "string"}
TOOLS = {
    "tools": [
        {
            "name": name,
            "effect": effect,
            "config": {"module": "draining", "function": name},
            "input_schema": {"type": "object", "properties": dict.fromkeys(takes, TEXT)},
        }
        for name, effect, takes in (
            ("look", "pure", ("key",)),
            ("put", "idempotent", ("key", "hold")),
            ("pay", "irreversible", ("key", "hold")),
            ("block", "irreversible", ("key",)),
        )
    ]
}


def laid_out(root: Path, recorder: Recorder) -> Path:
    (root / "tools").mkdir()
    (root / "tools" / "draining.json").write_text(json.dumps(TOOLS), "utf-8")
    (root / "draining.py").write_text(MODULE.replace("PORT", str(recorder.port)), "utf-8")
    return root


def serve(root: Path) -> Serving:
    # The tools speak to the recorder as its other callers do.
    return Serving(root, before=f"import sys; sys.path.append({str(ROOT)!r}); ")


def in_state(root: Path, state: str) -> int:
    with closing(sqlite3.connect(root / STORE)) as connection:
        question = "SELECT count(*) FROM tool_execution_log WHERE state = ?"
        return connection.execute(question, (state,)).fetchone()[0]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
