"""The same work on a gate in this process and on a server: one line differs."""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from toolgate import Caller, Toolgate, ToolgateError, Turn
from toolgate.client.remote import Remote

ME = Caller(tenant="demo", agent="assistant")


async def work(gate: Toolgate | Remote) -> None:
    output = await gate.call("echo", {"text": "hello"}, caller=ME, turn=Turn(group="t-1"))
    box = gate.toolbox(ME, turn=Turn(group="t-2"))
    print(output.status, output.data, box.is_available("echo"))
    try:
        await gate.call("nothing", caller=ME)
    except ToolgateError as error:
        print(type(error).__name__, error)


async def laptop() -> None:
    async with Toolgate.open() as gate:
        await work(gate)


async def fleet(url: str, key: str) -> None:
    async with Toolgate.connect(url, key) as gate:
        await work(gate)


@contextmanager
def serving() -> Generator[dict[str, Any]]:
    """`toolgate serve` in a folder of its own; elsewhere it runs already."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["toolgate", "serve", "--port", "0", "--json"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            greeting = ""
            for line in server.stdout or ():
                greeting += line
                if line == "}\n":
                    break
            try:
                yield json.loads(greeting)
            finally:
                server.terminate()


asyncio.run(laptop())
with serving() as greeting:
    asyncio.run(fleet(greeting["url"], greeting["keys"]["agent"]))
