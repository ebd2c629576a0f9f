"""Calls of queued tools on one machine: the store's own queue, and the worker of the same house."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, open_gate, states, until
from tests.queue.yard import over
from toolgate import Caller, Output, Toolgate, Turn, tool
from toolgate.errors import InvalidArguments, InvalidSpecs, Overloaded
from toolgate.executor import queued
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Settings
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import NOWHERE

pytestmark = pytest.mark.req("P6")
FIRST = Turn(group="t-1", id="1")


class Bench:
    """A tool that is held up until somebody lets it go on, and what it did."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.began = 0
        self.open = asyncio.Event()
        self.open.set()

    def add(self, gate: Toolgate, **fields: Any) -> None:
        async def work(number: int, account: str = "") -> dict[str, Any]:
            """Do it."""
            self.began += 1
            await self.open.wait()
            self.did.append(number if not account else (account, number))
            return {"did": number}

        gate.add(tool(execution="queued", **fields)(work))


async def _waits(gate: Toolgate, number: int) -> None:
    async with asyncio.timeout(20):
        while (await gate.queue.calls.depth()).waiting != number:  # noqa: ASYNC110  the store tells nobody
            await asyncio.sleep(0.01)


async def test_a_queued_call_is_answered_like_any_other(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        bench = Bench()
        bench.add(gate, effect="pure")
        output = await gate.call("work", {"number": 7}, caller=ME)
        assert output.ok, output
        assert output.data == {"did": 7}
        assert output.call_id.startswith("call_")
        assert bench.did == [7]
    async with open_gate(tmp_path) as gate:
        assert await states(gate) == [("work", "succeeded", "")]


async def test_who_does_not_wait_is_told_the_id_and_finds_the_result_by_it(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        bench = Bench()
        bench.add(gate, effect="irreversible")
        bench.open.clear()
        output = await gate.call("work", {"number": 1}, caller=ME, wait_s=0)
        assert (output.status, output.ok) == ("queued", False)
        assert output.error is not None
        assert output.error.code == "queued"
        kept = await gate.queue.calls.find("acme", output.call_id)
        assert kept is not None
        assert kept.stage in {"waiting", "taken"}
        assert await gate.queue.calls.find("other", output.call_id) is None
        bench.open.set()
        await until(lambda: bool(bench.did))
        found = kept
        while found.stage != "done":
            await asyncio.sleep(0.01)
            found = await gate.queue.calls.find("acme", output.call_id) or found
        assert b'"did":1' in found.output
        entry = await gate.journal.find("acme", output.call_id)
        assert entry is not None
        assert entry.state == "succeeded"


async def test_arguments_are_looked_at_before_a_call_is_queued(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        Bench().add(gate, effect="pure")
        with pytest.raises(InvalidArguments):
            await gate.call("work", {"number": "seven"}, caller=ME)


async def test_the_gate_is_asked_again_before_it_runs(tmp_path: Path) -> None:
    """What was allowed when it was queued, and is not any more, does not run."""
    async with open_gate(tmp_path) as gate:
        bench = Bench()
        bench.add(gate, effect="irreversible", order_by="account")
        bench.open.clear()
        first = await gate.call("work", {"number": 1, "account": "a"}, caller=ME, wait_s=0)
        await until(lambda: bench.began == 1)
        # Behind the first one, which is held up.
        second = asyncio.create_task(gate.call("work", {"number": 2, "account": "a"}, caller=ME))
        await _waits(gate, 1)
        await gate.tenancy.set_tenant_tool("acme", "work", enabled=False)
        bench.open.set()
        output = await second
        assert output.status == "error"
        assert output.error is not None
        assert output.error.code in {"permission_denied", "tool_not_found"}
        assert bench.did == [("a", 1)]
        assert first.status == "queued"


async def test_calls_of_one_value_keep_their_order_and_others_pass_them(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        bench = Bench()
        bench.add(gate, effect="irreversible", order_by="account")
        bench.open.clear()
        for number in range(20):
            account = "ab"[number % 2]
            await gate.call("work", {"number": number, "account": account}, caller=ME, wait_s=0)
        bench.open.set()
        await until(lambda: len(bench.did) == 20)
        assert [number for account, number in bench.did if account == "a"] == [*range(0, 20, 2)]
        assert [number for account, number in bench.did if account == "b"] == [*range(1, 20, 2)]


async def test_the_same_call_of_a_turn_is_done_once_however_often_it_is_queued(
    tmp_path: Path,
) -> None:
    async with open_gate(tmp_path) as gate:
        bench = Bench()
        bench.add(gate, effect="irreversible")
        calls = [gate.call("work", {"number": 3}, caller=ME, turn=FIRST) for _ in range(5)]
        outputs = await asyncio.gather(*calls)
        assert [output.data for output in outputs] == [{"did": 3}] * 5
        assert sorted(output.cached for output in outputs) == [False, True, True, True, True]
        assert bench.did == [3]


@pytest.mark.req("S2")
@pytest.mark.parametrize("key", [None, "order-1"])
async def test_a_call_that_is_over_is_answered_from_the_record_and_not_queued_again(
    tmp_path: Path, key: str | None
) -> None:
    async with open_gate(tmp_path) as gate:
        bench = Bench()
        bench.add(gate, effect="irreversible")
        turn = None if key else FIRST

        async def sent(number: int) -> Output:
            given = {"number": number}
            return await gate.call(
                "work", given, caller=ME, turn=turn, idempotency_key=key, wait_s=0
            )

        bench.open.clear()
        first, early = await sent(3), await sent(3)
        assert (first.status, early.status) == ("queued", "queued"), "nothing is on record yet"
        bench.open.set()
        await over(gate, [first.call_id, early.call_id])
        again = await sent(3)
        assert (again.status, again.data, again.cached) == ("success", {"did": 3}, True)
        assert again.call_id == first.call_id
        assert bench.did == [3]
        depth = await gate.queue.calls.depth()
        assert (depth.waiting, depth.sent, depth.taken) == (0, 0, 0), "nothing was queued for it"
        # Another piece of business is queued as ever.
        other = await gate.call("work", {"number": 4}, caller=ME, turn=FIRST, wait_s=0)
        assert other.status == "queued"
        await over(gate, [other.call_id])


async def test_a_pure_call_that_is_over_is_queued_again(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        bench = Bench()
        bench.add(gate, effect="pure")
        for _ in range(2):
            output = await gate.call("work", {"number": 5}, caller=ME, turn=FIRST, wait_s=0)
            assert output.status == "queued"
            await over(gate, [output.call_id])
        assert bench.did == [5, 5]


async def test_what_is_full_says_so(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, queue=Fleet(waiting=2, tenant_waiting=2, work="never"))
    async with Toolgate.open(settings) as gate:
        Bench().add(gate, effect="pure")
        for number in range(2):
            output = await gate.call("work", {"number": number}, caller=ME, wait_s=0)
            assert output.status == "queued"
        with pytest.raises(Overloaded, match="So many calls are queued"):
            await gate.call("work", {"number": 2}, caller=ME, wait_s=0)


async def test_one_tenant_that_floods_does_not_starve_another(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, queue=Fleet(concurrency=2))
    async with Toolgate.open(settings) as gate:
        bench = Bench()
        bench.add(gate, effect="irreversible")
        bench.open.clear()
        flood = [
            gate.call("work", {"number": number}, caller=Caller(tenant="many"), wait_s=0)
            for number in range(60)
        ]
        await asyncio.gather(*flood)
        await gate.call("work", {"number": 1_000}, caller=Caller(tenant="one"), wait_s=0)
        bench.open.set()
        await until(lambda: 1_000 in bench.did)
        assert bench.did.index(1_000) < 10


async def test_only_so_many_of_a_tenant_and_of_all_are_held_until_theirs_has_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them holds a connection: one tenant's would shut out all others."""
    monkeypatch.setattr(queued, "_MOST_OF_TENANT", 2)
    monkeypatch.setattr(queued, "_MOST_WAITING", 3)
    async with open_gate(tmp_path) as gate:
        bench = Bench()
        bench.add(gate, effect="irreversible")
        bench.open.clear()

        def sent(number: int, tenant: str) -> asyncio.Task[Output]:
            caller = Caller(tenant=tenant)
            return asyncio.create_task(
                gate.call("work", {"number": number}, caller=caller, wait_s=600)
            )

        held = [sent(1, "many"), sent(2, "many")]
        await until(lambda: bench.began == 2)
        assert (await sent(3, "many")).status == "queued"
        held.append(sent(4, "one"))
        await until(lambda: bench.began == 4)
        assert (await sent(5, "another")).status == "queued"
        bench.open.set()
        assert {(await one).status for one in held} == {"success"}
        # Who is not held is not forgotten, and who is answered makes room.
        await until(lambda: sorted(bench.did) == [1, 2, 3, 4, 5])
        assert (await sent(6, "many")).status == "success"


def test_what_holds_a_secret_is_not_queued() -> None:
    with pytest.raises(InvalidSpecs, match="marks a secret"):
        _added(
            {
                "type": "object",
                "properties": {"token": {"type": "string", "format": "password"}},
            }
        )
    _added({"type": "object", "properties": {"token": {"type": "string"}}})


def _added(schema: dict[str, Any]) -> None:
    read_tool({"name": "pay", "input_schema": schema, "execution": "queued"}, origin=NOWHERE)


async def test_who_waits_behind_others_is_told_so_once_the_house_takes_nothing_any_more(
    tmp_path: Path,
) -> None:
    settings = Settings(root=tmp_path, queue=Fleet(concurrency=1))
    async with Toolgate.open(settings) as gate:
        bench = Bench()
        bench.add(gate, effect="irreversible")
        bench.open.clear()
        runs = asyncio.create_task(gate.call("work", {"number": 1}, caller=ME))
        await until(lambda: bench.began == 1)
        waits = asyncio.create_task(gate.call("work", {"number": 2}, caller=ME))
        await _waits(gate, 1)
        gate.rest()
        assert (await waits).status == "queued"
        late = await gate.call("work", {"number": 3}, caller=ME)
        assert late.status == "queued", "nobody here takes it"
        assert not runs.done()
        bench.open.set()
        assert (await runs).data == {"did": 1}
    assert bench.did == [1]
