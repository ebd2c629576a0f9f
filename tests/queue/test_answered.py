"""Queued calls that another one answered for: who asks by their id learns which, and how it stands.

Each is asked about in a house whose own worker has run it.
"""

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, open_gate
from tests.queue.yard import over
from tests.server.serving import COMMAND
from toolgate import Call, Caller, Extension, ToolError, Toolgate, Turn, tool
from toolgate.call import Output
from toolgate.executor.extension import Priority

pytestmark = pytest.mark.req("P6", "V2")
TURN = Turn(group="t-1", id="1")
BACK = {"tool": "refund", "args": {"to": "$args.to"}}
ran: list[str] = []


@tool(effect="compensatable", compensation=BACK, execution="queued", requires_approval=True)
def pay(to: str) -> str:
    """Pay somebody, once a person agrees."""
    ran.append(to)
    return f"paid {to}"


@tool(effect="compensatable", compensation=BACK, execution="queued")
def tip(to: str) -> str:
    """Pay somebody a little."""
    ran.append(to)
    return f"tipped {to}"


@tool(effect="irreversible", execution="queued")
def fail(to: str) -> str:
    """Never works."""
    ran.append(to)
    raise ToolError("The far side says no.")


@tool(effect="idempotent")
def refund(to: str) -> str:
    """Take it back."""
    ran.remove(to)
    return f"refunded {to}"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


async def _later(gate: Toolgate, name: str, **more: Any) -> str:
    """The id under which it was queued, once it is over."""
    output = await gate.call(name, {"to": "bob"}, caller=ME, turn=TURN, wait_s=0, **more)
    assert output.status == "queued", output
    await over(gate, [output.call_id])
    return output.call_id


class Held(Extension):
    """What a worker brings waits until both of two twins are queued."""

    priority = Priority.HIGH

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def before(self, call: Call) -> None:
        if call.asked.delivered:
            await self.open.wait()


@asynccontextmanager
async def _twins(root: Path, name: str) -> AsyncGenerator[tuple[Toolgate, str, str]]:
    """A house in which both are over, and their ids in the order that they were queued."""
    held = Held()
    async with open_gate(root, held) as gate:
        gate.add(tip, fail, refund)
        sent = [
            await gate.call(name, {"to": "bob"}, caller=ME, turn=TURN, wait_s=0) for _ in range(2)
        ]
        assert [one.status for one in sent] == ["queued", "queued"]
        first, second = (one.call_id for one in sent)
        held.open.set()
        await over(gate, [first, second])
        yield gate, first, second


async def _approved(gate: Toolgate) -> tuple[str, str]:
    """The call that waited for a person, and the one that was made once they agreed."""
    first = await gate.call("pay", {"to": "bob"}, caller=ME, turn=TURN)
    assert first.error is not None
    await gate.approvals.approve(first.error.details["approval_id"], by="boss")
    return first.call_id, await _later(gate, "pay")


async def test_what_ran_under_the_id_that_it_waited_for_a_person_by_is_told_by_both(
    tmp_path: Path,
) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(pay, refund)
        asked, queued = await _approved(gate)
        assert ran == ["bob"]
        found = await gate.find("acme", queued)
        assert found.is_of(ME)
        assert not found.is_of(Caller(tenant="acme", agent="other"))
        shown, first = found.shown(), (await gate.find("acme", asked)).shown()
        assert (shown["call_id"], shown["state"], shown["answered_by"]) == (
            queued,
            "succeeded",
            asked,
        )
        assert (shown["args"], shown["output"]["data"]) == ({"to": "bob"}, "paid bob")
        assert (first["state"], "answered_by" in first) == ("succeeded", False)


async def test_the_second_of_a_turn_stands_as_the_first_does(tmp_path: Path) -> None:
    async with _twins(tmp_path, "tip") as (gate, first, second):
        shown = (await gate.find("acme", second)).shown()
        assert (shown["state"], shown["answered_by"]) == ("succeeded", first)
        assert (shown["output"]["data"], shown["output"]["cached"]) == ("tipped bob", True)
        assert ran == ["bob"]


async def test_taking_back_the_answered_one_takes_back_the_one_that_ran(tmp_path: Path) -> None:
    async with _twins(tmp_path, "tip") as (gate, first, second):
        await _taken_back(gate, first, second)


async def test_taking_back_the_approved_one_takes_back_the_one_that_ran(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(pay, refund)
        await _taken_back(gate, *await _approved(gate))


async def _taken_back(gate: Toolgate, first: str, second: str) -> None:
    [item] = (await gate.undo(caller=ME, call_id=second, reason="a mistake")).items
    assert (item.call_id, item.result) == (first, "undone")
    assert ran == []
    assert (await gate.find("acme", second)).shown()["state"] == "compensated"
    [again] = (await gate.undo(caller=ME, call_id=second, reason="twice")).items
    assert again.result == "already_undone"


async def test_running_the_answered_one_again_is_linked_to_the_one_that_ran(
    tmp_path: Path,
) -> None:
    async with _twins(tmp_path, "fail") as (gate, first, second):
        found = await gate.find("acme", second)
        assert (found.shown()["state"], found.shown()["answered_by"]) == ("failed", first)
        await gate.settling.again("acme", second, who="ops", why="mended")
        assert ran == ["bob", "bob"]
        [linked] = await gate.ledger.search(found.linked("acme", second))
        assert linked.again_of == first


async def _over(root: Path) -> tuple[str, str]:
    async with _twins(root, "tip") as (_gate, first, second):
        return first, second


def test_the_command_line_names_the_one_that_ran(tmp_path: Path) -> None:
    first, second = asyncio.run(_over(tmp_path))
    told = subprocess.run(
        [*COMMAND, "ledger", "show", second, "--tenant", "acme"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"answered by {first}" in told
    assert "succeeded" in told


class Borrowed(Extension):
    """Answers in the name of another call."""

    priority = Priority.HIGH

    def __init__(self) -> None:
        self.of = ""

    def before(self, call: Call) -> Output | None:
        if not self.of or not call.asked.delivered:
            return None
        return Output(status="success", data="borrowed", cached=True, call_id=self.of)


@pytest.mark.parametrize("whose", ["mine", "another's"])
async def test_what_an_extension_answers_shows_nothing_of_somebody_elses_call(
    tmp_path: Path, whose: str
) -> None:
    borrowed = Borrowed()
    other = ME if whose == "mine" else Caller(tenant="acme", agent="billing", user="eve")
    async with open_gate(tmp_path, borrowed) as gate:
        gate.add(tip, refund)
        before = await gate.call("tip", {"to": "carol"}, caller=other, turn=TURN)
        borrowed.of = before.call_id
        second = await _later(gate, "tip")
        shown = (await gate.find("acme", second)).shown()
        assert shown["output"]["data"] == "borrowed"
        assert shown.get("answered_by") == (before.call_id if whose == "mine" else None)
        assert shown["args"] == ({"to": "carol"} if whose == "mine" else None)
