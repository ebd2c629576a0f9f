"""Calls that are not wanted any more: by their tool's own time, or because their parent is over."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.blank import put_blank
from tests.house import ME, STORE, until
from tests.queue.yard import over
from toolgate import Toolgate, clock, tool
from toolgate.errors import InvalidSpecs
from toolgate.queue.message import read_output, read_request
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Settings
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import NOWHERE

pytestmark = pytest.mark.req("P6")
ran: list[str] = []
ended: list[str] = []


@tool(effect="irreversible", execution="queued", queue_expires=0.5)
async def brief(text: str) -> str:
    """Only worth something soon."""
    ran.append(text)
    return text


@tool(effect="irreversible", execution="queued")
async def lasting(text: str) -> str:
    """Takes as long as it may."""
    ran.append(text)
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(text)
    return text


@tool(effect="irreversible", execution="queued")
async def plain(text: str) -> str:
    """Done at once."""
    ran.append(text)
    return text


def opened(root: Path, work: Any) -> Any:
    ran.clear()
    ended.clear()
    put_blank(root / STORE)
    return Toolgate.open(Settings(root=root, queue=Fleet(work=work)))


def add_parent(gate: Toolgate, name: str, wait_s: float | None) -> None:
    @tool(name="parent", effect="irreversible", timeout=1.5)
    async def parent() -> str:
        """Has something done by another tool, and waits for it."""
        output = await gate.call(name, {"text": "child"}, caller=ME, wait_s=wait_s)
        return output.status

    gate.add(brief, lasting, plain, parent)


async def _passed(gate: Toolgate, call_id: str) -> None:
    """Its time in the queue is over, by the clock of this machine."""
    found = await gate.queue.calls.find("acme", call_id)
    assert found is not None
    while clock.unix_ns() <= found.expires_ns:  # noqa: ASYNC110  a clock tells nobody
        await asyncio.sleep(0.05)


async def test_a_tool_says_how_long_its_calls_may_wait(tmp_path: Path) -> None:
    async with opened(tmp_path, "never") as gate:
        gate.add(brief, plain)
        late = await gate.call("brief", {"text": "late"}, caller=ME, wait_s=0)
        kept = await gate.call("plain", {"text": "kept"}, caller=ME, wait_s=0)
        await _passed(gate, late.call_id)
    async with opened(tmp_path, "always") as gate:
        gate.add(brief, plain)
        found = {one.call_id: one for one in await over(gate, [late.call_id, kept.call_id])}
        output = read_output(found[late.call_id].output)
        assert output.error is not None
        assert output.error.code == "out_of_time"
        assert ran == ["kept"]
        entry = await gate.journal.find("acme", late.call_id)
        assert entry is not None
        assert (str(entry.state), entry.error_code) == ("expired", "out_of_time")
        # Calls that did nothing are in the audit by the page that they are on.
        pages = [
            one.details["first_call_id"]
            for one in await gate.tenancy.audit(tenant="acme")
            if one.change == "calls.page"
        ]
        assert late.call_id in pages


async def test_what_its_parent_waited_for_is_not_begun_once_that_is_over(tmp_path: Path) -> None:
    async with opened(tmp_path, "never") as gate:
        add_parent(gate, "plain", None)
        output = await gate.call("parent", caller=ME)
        assert output.data == "queued", "it was told so before its own time was over"
        assert output.duration_ms > 1_000, "until then it waited"
        [call_id] = await _queued(gate)
        await _passed(gate, call_id)
    async with opened(tmp_path, "always") as gate:
        gate.add(plain)
        await over(gate, [call_id])
        assert ran == []


async def test_what_is_handed_on_has_its_own_time(tmp_path: Path) -> None:
    async with opened(tmp_path, "never") as gate:
        add_parent(gate, "plain", 0)
        assert (await gate.call("parent", caller=ME)).data == "queued"
        [call_id] = await _queued(gate)
        found = await gate.queue.calls.find("acme", call_id)
        assert found is not None
        assert found.expires_ns - found.queued_ns > 3_000_000_000_000


async def test_what_its_parent_waited_for_does_not_run_on_without_it(tmp_path: Path) -> None:
    """Its tool would have had half a minute."""
    async with opened(tmp_path, "always") as gate:
        add_parent(gate, "lasting", None)
        calling = asyncio.create_task(gate.call("parent", caller=ME))
        await until(lambda: ran == ["child"])
        assert (await calling).data == "queued"
        await until(lambda: ended == ["child"], seconds=10)


async def _queued(gate: Toolgate) -> list[str]:
    taken = await gate.queue.calls.take(10, 0.0)
    await gate.queue.calls.sweep()
    assert all(read_request(one.message).id == one.call_id for one in taken)
    return [one.call_id for one in taken]


def test_only_a_queued_tool_waits() -> None:
    with pytest.raises(InvalidSpecs, match="queue_expires"):
        read_tool({"name": "pay", "queue_expires": 60}, origin=NOWHERE)
