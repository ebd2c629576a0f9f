"""Calls without end, some of them twice, and what was answered to each."""

import asyncio
import itertools
import random
from collections import defaultdict
from collections.abc import Callable

from tests.once.books import Books
from tests.once.recorder import Recorder
from tests.once.staff import Answer, Hand

TOOLS = ("pay", "send", "put", "book")
# What may be answered while workers are killed and stores go away.
HONEST = {"success", "unknown", "refused", "error"}


class Load:
    """One loop a worker; each is asked for new business, and for that of the others."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._dice = random.Random(7)  # noqa: S311  the same dice each time
        self.answers: defaultdict[tuple[str, str], list[Answer]] = defaultdict(list)
        self.asked: list[tuple[str, str]] = []

    async def go_on(self, worker: Callable[[], Hand | None]) -> None:
        """Until it is cancelled. A worker that is gone is waited for."""
        while True:
            hand = worker()
            if hand is None or hand.gone.is_set():
                await asyncio.sleep(0.01)
                continue
            answer = await self.one(hand)
            if answer is None or answer["status"] == "refused":
                await asyncio.sleep(0.01)

    async def one(self, hand: Hand) -> Answer | None:
        if self.asked and self._dice.random() < 0.4:
            tool, key = self._dice.choice(self.asked[-50:])
        else:
            tool, key = self._dice.choice(TOOLS), f"k{next(self._numbers)}"
            self.asked.append((tool, key))
        answer = await hand.call(tool, key, wait=2)
        if answer is not None:
            self.answers[tool, key].append(answer)
        return answer

    async def fresh(self, hand: Hand, count: int) -> list[Answer | None]:
        """New business only."""
        return await asyncio.gather(
            *(hand.call(TOOLS[one % len(TOOLS)], f"tail{one}") for one in range(count))
        )

    async def check(self, hand: Hand, recorder: Recorder, books: Books, *, within: float) -> None:
        """Everything is asked for once more; then the recorder says what is true."""
        async with asyncio.timeout(within):
            await books.closed()
        last = await asyncio.gather(*(hand.call(tool, key) for tool, key in self.asked))
        counts = {tool: recorder.counts(tool) for tool in TOOLS}
        for (tool, key), answer in zip(self.asked, last, strict=True):
            told = [*self.answers[tool, key], answer]
            times = counts[tool][key]
            history = f"{tool} {key}: {times} effects, {told}"
            assert answer is not None, history
            assert {one["status"] for one in told} <= HONEST, history
            assert answer["status"] in {"success", "unknown"}, history
            assert answer["status"] == "success" or tool == "pay", history
            if tool != "put":
                assert times <= 1, history
                data = [one["data"] for one in told if one["status"] == "success" and one["data"]]
                assert all(one == data[0] for one in data), history
            if any(one["status"] == "success" for one in told):
                assert times >= 1, history
        rows = await books.rows()
        happened = {line["call"] for line in recorder.lines()}
        for row in rows:
            assert row.state in {"succeeded", "failed", "unknown"}, row
            assert row.state != "succeeded" or row.call_id in happened, row
            assert row.state != "failed" or row.tool == "put" or row.call_id not in happened, row
