"""A process that runs calls: told which by lines, it answers each by a line when it is over.

Its tools do one thing, at the recorder. Each can be held before or after that, until it is told to
go on.
"""

import asyncio
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.once.far_side import FarSide
from toolgate import Call, Caller, ToolError, Toolgate, Turn, tool
from toolgate.crash import arm
from toolgate.errors import ToolgateError
from toolgate.settings.execution import Toolbox
from toolgate.settings.settings import Settings, Store

ME = Caller(tenant="acme", agent="clerk")
# Of one process at a time: what more there is waits here, not in the gate.
_AT_ONCE = 64


class Worker:
    """The child's side of the wire."""

    def __init__(self, terms: dict[str, Any]) -> None:
        self._terms = terms
        self._far: FarSide
        self._gate: Toolgate
        self._wire: asyncio.StreamWriter
        self._go: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def work(self) -> None:
        terms = self._terms
        reader, self._wire = await asyncio.open_unix_connection(terms["wire"], limit=2**24)
        self._far = await FarSide.reach(terms["recorder"])
        settings = Settings(
            root=Path(terms["root"]),
            store=Store(url=terms["url"]),
            toolbox=Toolbox(
                lease=terms["lease"],
                default_wait=terms["wait"],
                default_timeout=60,
                default_idempotency_ttl=terms["ttl"],
            ),
        )
        if terms["crash_at"]:
            arm(terms["crash_at"])
        async with Toolgate.open(settings) as self._gate:
            self._add_tools()
            self._say(pid=os.getpid(), up=True)
            while line := await reader.readline():
                told = json.loads(line)
                if "go" in told:
                    self._go[told["go"]].set()
                    continue
                task = asyncio.create_task(self._run(told))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _say(self, **words: Any) -> None:
        self._wire.write(json.dumps(words).encode() + b"\n")

    async def _run(self, told: dict[str, Any]) -> None:
        turn = told.get("turn")
        try:
            async with self._room:
                output = await self._gate.call(
                    told["tool"],
                    told["args"],
                    caller=Caller(tenant=told.get("tenant", ME.tenant), agent=ME.agent),
                    turn=None if turn is None else Turn(group=turn),
                    idempotency_key=told.get("once"),
                    wait_s=told.get("wait"),
                )
        except ToolgateError as error:
            self._say(id=told["id"], status="refused", code=error.code, message=error.message)
            return
        failure = output.error
        self._say(
            id=told["id"],
            status=output.status,
            data=output.data,
            cached=output.cached,
            call=output.call_id,
            code="" if failure is None else failure.code,
            message="" if failure is None else failure.message,
        )

    async def _happen(self, call: Call, key: str, hold: str, down: str = "") -> dict[str, Any]:
        if hold == "before":
            await self._held(key)
        done = await self._far.ask(
            do="effect", tool=call.spec.name, key=key, down=down, pid=os.getpid(), call=call.id
        )
        if hold == "after":
            await self._held(key)
        if hold == "fails":
            raise ToolError("it was done, and then something broke")
        if hold == "breaks":
            raise ValueError("it was done, and then something broke")
        return {"number": done["number"]}

    async def _held(self, key: str) -> None:
        self._say(held=key)
        await self._go[key].wait()

    def _add_tools(self) -> None:
        @tool(effect="irreversible")
        async def pay(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="idempotent")
        async def put(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="irreversible", downstream_key={"header": "Idempotency-Key"})
        async def send(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold, call.downstream_key)

        @tool(effect="irreversible", probe={"tool": "happened", "args": {"key": "$args.key"}})
        async def book(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="pure")
        async def happened(key: str) -> dict[str, Any]:
            told = await self._far.ask(do="count", tool="book", key=key)
            return {"happened": told["count"] > 0}

        @tool(
            effect="compensatable",
            compensation={"tool": "close", "args": {"key": "$args.key"}},
        )
        async def open_account(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        @tool(effect="idempotent", name="close")
        async def close_account(call: Call, key: str, hold: str = "") -> dict[str, Any]:
            return await self._happen(call, key, hold)

        self._gate.add(pay, put, send, book, happened, open_account, close_account)


def main(terms: dict[str, Any]) -> None:
    asyncio.run(Worker(terms).work())
