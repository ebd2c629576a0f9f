"""Killed between a commit and what should follow it: nothing is lost, nothing counts twice."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.house import ME, until
from tests.people.receiver import SECRET, Receiver, receiving
from toolgate import Toolgate, clock, tool
from toolgate.ledger.approval import Standing
from toolgate.settings.execution import Events
from toolgate.settings.settings import Settings
from toolgate.store.outbox import TableOutbox

pytestmark = pytest.mark.req("S3", "S6", "S7")
ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "PEOPLE_CRASH_SECRET"
ran: list[str] = []


@tool(effect="irreversible", requires_approval=True)
async def pay(to: str) -> str:
    """Pay."""
    ran.append(to)
    return to


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send."""
    return to


APPROVE = """
import asyncio, sys
from pathlib import Path
from toolgate import Toolgate
from toolgate.settings.settings import Settings

async def main():
    async with Toolgate.open(Settings(root=Path(sys.argv[1]))) as gate:
        await gate.approvals.approve(sys.argv[2], by="boss")

asyncio.run(main())
"""
SEND = """
import asyncio, sys
from pathlib import Path
from tests.people.test_crash import VARIABLE, send
from toolgate import Caller, Toolgate
from toolgate.settings.execution import Events
from toolgate.settings.settings import Settings
from toolgate.sinks import publisher

publisher._LEASE = 0.1

async def main():
    events = Events(url=sys.argv[2], secret_env=VARIABLE)
    async with Toolgate.open(Settings(root=Path(sys.argv[1]), events=events)) as gate:
        gate.add(send)
        await gate.call("send", {"to": "bob"}, caller=Caller(tenant="acme", agent="billing"))
        await asyncio.sleep(50)

asyncio.run(main())
"""


async def killed(program: str, *arguments: str, env: Mapping[str, str]) -> None:
    """Run it until it kills itself."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env},
        stdout=subprocess.DEVNULL,
    )
    assert await process.wait() == -9


async def asked(gate: Toolgate) -> str:
    output = await gate.call("pay", {"to": "bob"}, caller=ME)
    assert output.error is not None
    return output.error.details["approval_id"]


async def test_an_approval_whose_process_is_killed_is_there_once_and_still_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran.clear()
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        gate.add(pay)
        for number in (1, 2):
            id_ = await asked(gate)
            await killed(APPROVE, str(tmp_path), id_, env={"TOOLGATE_CRASH_AT": "CP12"})
            found = await gate.approvals.find(id_, by="boss")
            assert found is not None
            assert found.state is Standing.APPROVED
            if number == 1:
                outputs = await asyncio.gather(
                    *(gate.call("pay", {"to": "bob"}, caller=ME) for _ in range(4))
                )
                assert [one.status for one in outputs].count("success") == 1
                assert ran == ["bob"]
        real = clock.unix_ns
        monkeypatch.setattr(clock, "unix_ns", lambda: real() + 3_601 * 10**9)
        assert await asked(gate) != id_
        assert ran == ["bob"]


async def test_an_event_whose_sender_is_killed_is_sent_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    async with receiving() as receiver:
        env = {"TOOLGATE_CRASH_AT": "CP8", VARIABLE: SECRET}
        await killed(SEND, str(tmp_path), receiver.url, env=env)
        assert receiver.got == []
        await _sent_by_the_next(tmp_path, receiver)


async def _sent_by_the_next(root: Path, receiver: Receiver) -> None:
    events = Events(url=receiver.url, secret_env=VARIABLE)
    async with Toolgate.open(Settings(root=root, events=events)):
        await until(lambda: "side_effect.started" in receiver.kinds, seconds=50)


async def test_an_event_that_arrived_before_its_sender_was_killed_comes_twice_with_one_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    async with receiving() as receiver:
        events = Events(url=receiver.url, secret_env=VARIABLE)
        kept = TableOutbox.sent

        # It arrives, and cannot be marked as such: as if killed between the two.
        async def lost(_self: TableOutbox, _numbers: object) -> None:
            monkeypatch.setattr(TableOutbox, "sent", kept)
            raise asyncio.CancelledError

        monkeypatch.setattr("toolgate.sinks.publisher._LEASE", 0.1)
        monkeypatch.setattr(TableOutbox, "sent", lost)
        async with Toolgate.open(Settings(root=tmp_path, events=events)) as gate:
            gate.add(send)
            await gate.call("send", {"to": "bob"}, caller=ME)
            await until(lambda: len(receiver.got) == 1)
        async with Toolgate.open(Settings(root=tmp_path, events=events)):
            await until(lambda: "side_effect.completed" in receiver.kinds)
        first, again, last = receiver.got
        assert first.id == again.id != last.id
        assert first.raw == again.raw
