"""A call that a person agreed to is on record once, whatever becomes of its attempts."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.limits.house import ME, eventually
from toolgate import Extension, Output, Priority, Toolgate, Turn, tool
from toolgate.errors import ApprovalDenied, InvalidRequest
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun
from toolgate.settings.settings import Settings
from toolgate.store.journal import TableJournal

pytestmark = pytest.mark.req("S6", "S3")
TURN = Turn(group="t-1")


@tool(effect="irreversible", requires_approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


@tool(effect="irreversible", requires_approval=True)
async def torn() -> str:
    """Fail in the middle."""
    raise RuntimeError


@asynccontextmanager
async def opened(root: Path, *extensions: Extension) -> AsyncGenerator[Toolgate]:
    async with Toolgate.open(Settings(root=root), extensions=extensions) as gate:
        gate.add(pay, torn)
        yield gate


async def asked(gate: Toolgate, name: str) -> "tuple[asyncio.Task[Output], str]":
    """A call that waits for a person, and what it waits for."""
    call = asyncio.create_task(gate.call(name, caller=ME, turn=TURN, wait_s=20))

    async def is_asked() -> bool:
        return bool(await gate.approvals.list("acme"))

    await eventually(is_asked)
    return call, (await gate.approvals.list("acme"))[0].id


async def on_record(gate: Toolgate) -> list[tuple[str, str]]:
    """Each id with its state, as often as it is there."""
    await gate.journal.drain()
    return [(entry.call_id, str(entry.state)) for entry in await gate.journal.entries("acme")]


@pytest.mark.parametrize(("name", "state"), [("pay", "succeeded"), ("torn", "unknown")])
async def test_what_was_waited_for_is_on_record_once(tmp_path: Path, name: str, state: str) -> None:
    async with opened(tmp_path) as gate:
        call, approval = await asked(gate, name)
        await gate.approvals.approve(approval, by="boss")
        output = await call
        assert await on_record(gate) == [(output.call_id, state)]


async def test_a_no_is_on_record_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        call, approval = await asked(gate, "pay")
        await gate.approvals.deny(approval, by="boss")
        with pytest.raises(ApprovalDenied):
            await call
        [(_, state)] = await on_record(gate)
        assert state == "failed"


async def test_who_goes_away_while_a_person_thinks_leaves_the_call_waiting(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        call, approval = await asked(gate, "pay")
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        [(waiting, state)] = await on_record(gate)
        assert state == "waiting"
        await gate.approvals.approve(approval, by="boss")
        output = await gate.call("pay", caller=ME, turn=TURN)
        assert (output.data, output.call_id) == ("paid", waiting)
        assert await on_record(gate) == [(waiting, "succeeded")]


class _Refuses(Extension):
    """Behind the person's word."""

    priority = Priority.NORMAL

    def before(self, _call: object) -> None:
        raise InvalidRequest("Not today.")


async def test_what_is_refused_behind_a_yes_is_not_on_record_as_another_call(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, _Refuses()) as gate:
        call, approval = await asked(gate, "pay")
        await gate.approvals.approve(approval, by="boss")
        with pytest.raises(InvalidRequest):
            await call
        [(_, state)] = await on_record(gate)
        assert state == "waiting"


async def test_who_goes_away_during_the_claim_has_tried_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed, answered = asyncio.Event(), asyncio.Event()
    begin = TableJournal.begin

    async def slowly(
        self: TableJournal, entry: Entry, *, may_start: bool = True, basis: Basis | None = None
    ) -> Begun:
        """The store has done it, and its answer is on its way."""
        begun = await begin(self, entry, may_start=may_start, basis=basis)
        claimed.set()
        await answered.wait()
        return begun

    async with opened(tmp_path) as gate:
        call, approval = await asked(gate, "pay")
        monkeypatch.setattr(TableJournal, "begin", slowly)
        await gate.approvals.approve(approval, by="boss")
        await claimed.wait()
        [(paying, state)] = await on_record(gate)
        assert state == "started"
        call.cancel()
        answered.set()
        await asyncio.gather(call, return_exceptions=True)

        async def is_over() -> bool:
            return await on_record(gate) == [(paying, "failed")]

        await eventually(is_over)
        again = await gate.call("pay", caller=ME, turn=TURN)
        assert again.status == "pending_approval", "what was not tried may be asked for again"
