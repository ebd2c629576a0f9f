"""A process that runs calls: told which by lines, it answers each by a line when it is over."""

import asyncio
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.once.far_side import FarSide
from tests.once.trade import Trade
from toolgate import Caller, Toolgate, Turn
from toolgate.crash import arm
from toolgate.errors import ToolgateError
from toolgate.settings.execution import Events, Toolbox
from toolgate.settings.settings import Settings, Store

ME = Caller(tenant="acme", agent="clerk")
# Of one process at a time: what more there is waits here, not in the gate.
_AT_ONCE = 16
VARIABLE = "TOOLGATE_ONCE_SIGNS"


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
            events=Events(url=terms["events"], secret_env=VARIABLE if terms["events"] else ""),
        )
        os.environ[VARIABLE] = "a secret that signs events"
        if terms["crash_at"]:
            arm(terms["crash_at"])
        async with Toolgate.open(settings) as self._gate:
            self._gate.add(*Trade(self._far, self._held).tools())
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
        try:
            async with self._room:
                answer = await self._done(told)
        except ToolgateError as error:
            answer = {"status": "refused", "code": error.code, "message": error.message}
        self._say(id=told["id"], **answer)

    async def _done(self, told: dict[str, Any]) -> dict[str, Any]:
        caller = Caller(tenant=told.get("tenant", ME.tenant), agent=ME.agent)
        match told.get("verb", "call"):
            case "undo":
                report = await self._gate.undo(caller=caller, turn_group=told["group"])
                return report.to_machine()
            case "approve":
                found = await self._gate.approvals.approve(told["which"], by="boss")
                return {"state": str(found.state)}
            case "again":
                output = await self._gate.settling.again(
                    ME.tenant, told["call"], who="boss", why="the far side has lost it"
                )
            case "switch":
                await self._gate.tenancy.set_tool(told["tool"], told["enabled"])
                return {}
            case "budget":
                await self._gate.tenancy.set_budget(ME.tenant, "tool_calls", told["most"])
                return {}
            case "usage":
                lines = await self._gate.usage.lines(tenant=ME.tenant)
                return {"used": sum(one.used for one in lines if one.metric == "tool_calls")}
            case "reload":
                await self._gate.catalog.reload()
                return {"tools": sorted(self._gate.catalog.current.specs)}
            case _:
                turn, turn_id = told.get("turn"), told.get("turn_id", "")
                output = await self._gate.call(
                    told["tool"],
                    told["args"],
                    caller=caller,
                    turn=None if turn is None else Turn(group=turn, id=turn_id),
                    idempotency_key=told.get("once"),
                    wait_s=told.get("wait"),
                )
        failure = output.error
        return {
            "status": output.status,
            "data": output.data,
            "cached": output.cached,
            "call": output.call_id,
            "code": "" if failure is None else failure.code,
            "message": "" if failure is None else failure.message,
            "details": {} if failure is None else failure.details,
        }

    async def _held(self, key: str) -> None:
        self._say(held=key)
        await self._go[key].wait()


def main(terms: dict[str, Any]) -> None:
    asyncio.run(Worker(terms).work())
