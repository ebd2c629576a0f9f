"""Calls of several kinds at a steady rate, each made again under its key until it is answered."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp

ACCOUNTS = 6
_AGAIN = 0.25
_MOST_WAITING = 400
# What a call may come back with before it is settled: made again, it is the same one.
_FINAL = frozenset({"success", "queued", "unknown"})


@dataclass
class Sent:
    """A side effect that was asked for, and how it was answered at last."""

    key: str
    status: str = ""
    calls: list[str] = field(default_factory=list)


class Traffic:
    """Whoever calls. `effects` holds each side effect that was asked for."""

    def __init__(self, url: str, key: str, rate: float) -> None:
        self._url = url
        self._key = key
        self._rate = rate
        self._waiting: set[asyncio.Task[None]] = set()
        self._numbers = 0
        # How many were made in a second, over all of it.
        self.offered = 0.0
        self.effects: list[Sent] = []
        self.over = False
        self.statuses: Counter[str] = Counter()

    async def run(self) -> None:
        """Until it is `over`, and all that was asked for is answered."""
        timeout = aiohttp.ClientTimeout(total=40)
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        headers = {"Authorization": f"Bearer {self._key}"}
        async with aiohttp.ClientSession(
            timeout=timeout, connector=connector, headers=headers
        ) as session:
            lanes = [asyncio.create_task(self._lane(session, n)) for n in range(ACCOUNTS)]
            chance = random.Random(7)  # noqa: S311  to be the same each time
            began = time.monotonic()
            due = 0.0
            while not self.over:
                # By the clock: who overslept makes what was due meanwhile.
                due = max(due, (time.monotonic() - began) * self._rate - self._rate)
                while due < (time.monotonic() - began) * self._rate:
                    due += 1
                    if len(self._waiting) < _MOST_WAITING:
                        self._begin(session, chance.random())
                await asyncio.sleep(1 / self._rate)
            self.offered = self._numbers / (time.monotonic() - began)
            await asyncio.gather(*self._waiting, *lanes)

    def _begin(self, session: aiohttp.ClientSession, chance: float) -> None:
        self._numbers += 1
        text = f"n{self._numbers}"
        if chance < 0.6:
            work = self._pure(session, "look", text)
        elif chance < 0.75:
            work = self._pure(session, "look_later", text)
        else:
            sent = Sent(f"mark-{text}")
            self.effects.append(sent)
            work = self._effect(session, sent, "mark", {"text": sent.key})
        task = asyncio.create_task(work)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _pure(self, session: aiohttp.ClientSession, tool: str, text: str) -> None:
        """One that fails is nobody's loss."""
        status, _ = await self._asked(session, {"tool": tool, "args": {"text": text}})
        self.statuses[f"{tool} {status}"] += 1

    async def _lane(self, session: aiohttp.ClientSession, number: int) -> None:
        """The side effects of one account, one behind the other in the queue."""
        place = 0
        while not self.over:
            place += 1
            sent = Sent(f"a{number}-{place}")
            self.effects.append(sent)
            args = {"account": f"a{number}", "text": sent.key}
            await self._effect(session, sent, "post", args, wait_s=0)
            await asyncio.sleep(ACCOUNTS / 20)

    async def _effect(
        self, session: aiohttp.ClientSession, sent: Sent, tool: str, args: Any, **more: Any
    ) -> None:
        body = {"tool": tool, "args": args, "idempotency_key": sent.key, **more}
        while True:
            status, call_id = await self._asked(session, body)
            if call_id:
                sent.calls.append(call_id)
            self.statuses[f"{tool} {status}"] += 1
            if status in _FINAL:
                sent.status = status
                return
            await asyncio.sleep(_AGAIN)

    async def _asked(self, session: aiohttp.ClientSession, body: Any) -> tuple[str, str]:
        try:
            async with session.post(f"{self._url}/v1/call", json=body) as answer:
                told = await answer.json(content_type=None)
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            return type(error).__name__, ""
        if not isinstance(told, dict):
            return "nothing", ""
        fields = cast("dict[str, Any]", told)
        code = fields.get("status") if "ok" in fields else fields.get("code")
        return str(code), fields.get("call_id", "")

    async def tail(self, count: int) -> list[str]:
        """So many calls of each kind in turn, now that nothing is broken: how each ended."""
        found: list[str] = []
        headers = {"Authorization": f"Bearer {self._key}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for number in range(count):
                text = f"tail-{number}"
                tool, args = (
                    ("look", {"text": text}),
                    ("look_later", {"text": text}),
                    ("mark", {"text": text}),
                    ("post", {"account": "tail", "text": text}),
                )[number % 4]
                body = {"tool": tool, "args": args, "idempotency_key": text}
                found.append((await self._asked(session, body))[0])
        return found
