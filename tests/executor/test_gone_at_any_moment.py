"""A caller that goes away, at whichever wait: one end on record, and it says what is true."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.blank import put_blank
from tests.house import STORE
from tests.limits.house import ME, open_limited
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, SHARED
from toolgate import Toolgate, tool

pytestmark = [pytest.mark.req("S2", "S3", "S6", "X9"), pytest.mark.timeout(120)]
# More than a call waits.
WAITS = 30
AT_ONCE, AS_ANSWERED, TWICE, ALWAYS = "at once", "as it is answered", "twice", "again and again"
# How often it can have happened, by what is on record.
TRUE = {"failed": {0}, "waiting": {0}, "unknown": {0, 1}, "succeeded": {1}}


class Watched:
    """A coroutine, and somebody who is told each time that it waits, and for what."""

    def __init__(self, inner: Coroutine[Any, Any, Any], told: Callable[[Any], None]) -> None:
        self._inner = inner
        self._told = told

    def __await__(self) -> Generator[Any, Any, Any]:
        inner: Any = self._inner.__await__()
        thrown: BaseException | None = None
        while True:
            try:
                waited = inner.send(None) if thrown is None else inner.throw(thrown)
            except StopIteration as over:
                return over.value
            self._told(waited)
            thrown = None
            try:
                yield waited
            except BaseException as error:  # noqa: BLE001  it is the inner one's
                thrown = error


async def left(call: Coroutine[Any, Any, Any], at: int, how: str) -> None:
    """Cancel it at its so-manieth wait."""
    loop, waits = asyncio.get_running_loop(), 0

    def leave(*_answered: object) -> None:
        if not task.done():
            task.cancel()
            if how == ALWAYS:
                loop.call_soon(leave)

    def told(waited: Any) -> None:
        nonlocal waits
        waits += 1
        if waits != at:
            return
        if how == AS_ANSWERED and waited is not None:
            waited.add_done_callback(leave)
            return
        loop.call_soon(leave)
        if how == TWICE:
            loop.call_soon(loop.call_soon, leave)

    async def watched() -> None:
        await Watched(call, told)

    task = asyncio.create_task(watched())
    await asyncio.wait([task])


@pytest.fixture(params=SHARED)
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[str]:
    async with AsyncExitStack() as stack:
        if request.param == FILE:
            put_blank(tmp_path / STORE)
            yield f"sqlite:///{tmp_path / STORE}"
        else:
            server: Server = request.getfixturevalue("postgres")
            yield await stack.enter_async_context(lent_url(server))


async def agreed(gate: Toolgate, args: dict[str, Any]) -> None:
    pending = await gate.call("pay", args, caller=ME)
    assert pending.error is not None
    await gate.approvals.approve(pending.error.details["approval_id"], by="boss", reason="fine")


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("how", [AT_ONCE, AS_ANSWERED, TWICE, ALWAYS])
async def test_whoever_goes_away_at_any_wait_leaves_one_true_end_and_has_paid_for_it(
    tmp_path: Path, url: str, how: str, *, asks: bool
) -> None:
    ran: Counter[int] = Counter()

    @tool(effect="irreversible", costs={"money": "$args.amount"}, requires_approval=asks)
    async def pay(amount: int) -> int:
        await asyncio.sleep(0)
        ran[amount] += 1
        await asyncio.sleep(0)
        return amount

    async with open_limited(tmp_path, url=url) as gate:
        gate.add(pay)
        await gate.tenancy.set_budget("acme", "money", 10_000)
        if asks:
            for amount in range(WAITS + 1):
                await agreed(gate, {"amount": amount})
        # What is decided once does not have to be decided again.
        assert (await gate.call("pay", {"amount": 0}, caller=ME)).ok
        for at in range(1, WAITS + 1):
            await left(gate.call("pay", {"amount": at}, caller=ME), at, how)
    found = defaultdict[int, list[str]](list)
    # What was still to be written when it closed is written.
    async with open_limited(tmp_path, url=url) as gate:
        for entry in await gate.journal.entries("acme", limit=1_000):
            if entry.args:
                found[msgspec.json.decode(entry.args)["amount"]].append(str(entry.state))
            else:
                assert entry.state == "failed", "only a side effect keeps its arguments"
        (line,) = [one for one in await gate.usage.lines(tenant="acme") if one.metric == "money"]
    for amount in range(WAITS + 1):
        # It may have been over before anything of it was on record.
        (state,) = found.setdefault(amount, ["failed"])
        assert ran[amount] in TRUE[state], (amount, state)
    assert ran[WAITS] == 1, "the last ones were not cancelled"
    paid = sum(amount for amount, (state,) in found.items() if state in {"succeeded", "unknown"})
    assert (line.used, line.held) == (paid, 0)
