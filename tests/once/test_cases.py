"""The same call again: equal, nearly equal, elsewhere, too late, damaged. It happens once."""

import asyncio
import unicodedata
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.store.places import open_at
from toolgate import Caller, Output, ToolError, Toolgate, Turn, tool
from toolgate.call import Event
from toolgate.errors import (
    IdempotencyConflict,
    InProgress,
    InvalidArguments,
    InvalidRequest,
    StoreMismatch,
)
from toolgate.executor.recording.claim import Claim
from toolgate.settings.settings import Settings, Store
from toolgate.store.records import tool_execution_log

pytestmark = pytest.mark.req("S2", "S3")
ME = Caller(tenant="acme", agent="clerk")
OTHER = Caller(tenant="umbrella", agent="clerk")
ANYTHING: dict[str, Any] = {"type": "object", "additionalProperties": True}
Change = Callable[[dict[str, Any]], Any]


class House:
    """A gate, and a list of what its tools did."""

    def __init__(self, gate: Toolgate, url: str) -> None:
        self.gate = gate
        self.done: list[Any] = []
        self.url = url
        self.go = asyncio.Event()
        self.go.set()
        gate.add(*self._tools())

    def _tools(self) -> list[Callable[..., Any]]:
        @tool(effect="irreversible", input_schema=ANYTHING)
        async def pay(**args: Any) -> int:
            self.done.append(args)
            await self.go.wait()
            return len(self.done)

        @tool(effect="irreversible", input_schema=ANYTHING)
        async def refund(**args: Any) -> int:
            self.done.append(args)
            return len(self.done)

        @tool(effect="irreversible")
        async def breaks(how: str) -> None:
            self.done.append(how)
            if how == "permanent":
                raise ToolError("there is no such account")
            if how == "transient":
                raise ToolError("busy", retryable=True)
            raise ValueError(how)

        @tool(effect="irreversible", idempotency_key=["ticket"])
        async def mail(ticket: str, to: str) -> str:
            self.done.append(to)
            await self.go.wait()
            return to

        return [pay, refund, breaks, mail]

    async def pay(self, args: dict[str, Any], key: str = "k", **more: Any) -> Any:
        fields: dict[str, Any] = {"caller": ME, "idempotency_key": key} | more
        return await self.gate.call("pay", args, **fields)

    async def change(self, **values: Any) -> int:
        """Rows as another hand left them."""
        database = open_at(self.url)
        try:
            changed = sa.update(tool_execution_log).values(**values)
            return await database.write(lambda one: one.execute(changed).rowcount)
        finally:
            await database.close()

    async def rows(self) -> int:
        return len(await self.gate.journal.entries("acme"))


@pytest.fixture
async def house(url: str, tmp_path: Path) -> AsyncGenerator[House]:
    settings = Settings(root=tmp_path, store=Store(url=url))
    async with Toolgate.open(settings) as gate:
        yield House(gate, url)


async def test_sixty_four_at_once_do_it_once_and_get_one_answer(house: House) -> None:
    house.go.clear()
    calls = [asyncio.create_task(house.pay({"n": 1}, wait_s=20)) for _ in range(64)]
    while not house.done:  # noqa: ASYNC110  the tool says so
        await asyncio.sleep(0.01)
    hasty = await asyncio.gather(
        *(house.pay({"n": 1}, wait_s=0) for _ in range(4)), return_exceptions=True
    )
    assert all(isinstance(one, InProgress) for one in hasty)
    house.go.set()
    outputs = await asyncio.gather(*calls)
    assert [one.data for one in outputs] == [1] * 64
    assert len(house.done) == 1
    assert [one.cached for one in outputs].count(False) == 1


async def test_without_the_key_all_of_them_would_do_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unclaimed(*_: object) -> Claim:
        return Claim("", "", "")

    monkeypatch.setattr("toolgate.executor.recording.entries.claim_of", unclaimed)
    await asyncio.gather(*(house.pay({"n": 1}) for _ in range(8)))
    assert len(house.done) == 8, "the guard is what the test above stands on"


EQUAL: dict[str, tuple[Any, Any]] = {
    "order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "a whole float": ({"n": 1}, {"n": 1.0}),
    "nested": ({"x": [{"a": 1, "b": 2.0}]}, {"x": [{"b": 2, "a": 1}]}),
}
UNEQUAL: dict[str, tuple[Any, Any]] = {
    "one sign": ({"to": "ann"}, {"to": "anm"}),
    "form of an accent": (
        {"to": unicodedata.normalize("NFC", "René")},
        {"to": unicodedata.normalize("NFD", "René")},
    ),
    "a null more": ({"to": "ann"}, {"to": "ann", "cc": None}),
    "a flag for a number": ({"n": 1}, {"n": True}),
    "a text for a number": ({"n": 1}, {"n": "1"}),
    "another order of a list": ({"x": [1, 2]}, {"x": [2, 1]}),
    "a large number": ({"n": 2**53 + 1}, {"n": float(2**53)}),
}


@pytest.mark.parametrize(("first", "second"), EQUAL.values(), ids=EQUAL)
async def test_arguments_that_mean_the_same_are_answered_with_the_first_result(
    house: House, first: Any, second: Any
) -> None:
    assert not (await house.pay(first)).cached
    again = await house.pay(second)
    assert (again.cached, again.data, len(house.done)) == (True, 1, 1)


@pytest.mark.parametrize(("first", "second"), UNEQUAL.values(), ids=UNEQUAL)
async def test_arguments_that_differ_are_refused_under_the_same_key(
    house: House, first: Any, second: Any
) -> None:
    await house.pay(first)
    with pytest.raises(IdempotencyConflict):
        await house.pay(second)
    assert len(house.done) == 1
    assert (await house.pay(second, "another")).data == 2, "under a key of its own it runs"


async def test_without_the_digest_other_arguments_would_get_the_first_answer(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(*_: object) -> Claim:
        return Claim("clerk/key", "k", "the same")

    monkeypatch.setattr("toolgate.executor.recording.entries.claim_of", careless)
    await house.pay({"to": "ann"})
    assert (await house.pay({"to": "bob"})).cached, "the guard is what the test above stands on"


async def test_the_same_key_of_another_tenant_or_agent_is_another_key(house: House) -> None:
    assert (await house.pay({"to": "ann"})).data == 1
    for number, caller in enumerate([OTHER, Caller(tenant="acme", agent="broker")], start=2):
        theirs = await house.pay({"to": "ann"}, caller=caller)
        assert (theirs.cached, theirs.data) == (False, number)
    assert (await house.pay({"to": "ann"})).data == 1


async def test_another_tool_or_another_version_of_it_is_refused_under_the_same_key(
    house: House,
) -> None:
    await house.pay({"n": 1})
    with pytest.raises(IdempotencyConflict):
        await house.gate.call("refund", {"n": 1}, caller=ME, idempotency_key="k")

    @tool(effect="irreversible", input_schema=ANYTHING, version="2")
    async def pay(**args: Any) -> int:
        house.done.append(args)
        return len(house.done)

    house.gate.catalog.put("python", [])
    house.gate.add(pay)
    with pytest.raises(IdempotencyConflict):
        await house.pay({"n": 1})
    assert len(house.done) == 1


@pytest.mark.parametrize(
    "key",
    ["", " ", "a b", "a\0b", "x" * 256, "x" * 10_000, "k€y", "\U0001f600", "tab\t", ["k"], 7],
    ids=repr,
)
async def test_a_key_that_is_none_is_refused_and_leaves_nothing(house: House, key: Any) -> None:
    with pytest.raises(InvalidRequest):
        await house.pay({"n": 1}, key)
    assert (house.done, await house.rows()) == ([], 0)
    assert (await house.pay({"n": 1}, "x" * 255)).data == 1


async def test_a_tool_that_breaks_after_its_effect_is_not_run_again_by_itself(
    house: House,
) -> None:
    for cached in (False, True):
        output = await house.gate.call("breaks", {"how": "x"}, caller=ME, idempotency_key="k")
        assert output.cached is cached
        assert output.error is not None
        assert output.error.details == {"outcome": "unknown"}
    assert house.done == ["x"]


@pytest.mark.parametrize(("how", "runs"), [("permanent", 1), ("transient", 2)])
async def test_a_lasting_error_is_told_again_and_a_passing_one_is_tried_again(
    house: House, how: str, runs: int
) -> None:
    first, second = [
        await house.gate.call("breaks", {"how": how}, caller=ME, idempotency_key="k")
        for _ in range(2)
    ]
    assert first.error is not None
    assert second.error is not None
    assert (first.error.code, second.error.code) == ("tool_error", "tool_error")
    assert second.error.message == first.error.message
    assert (len(house.done), second.cached) == (runs, runs == 1)


async def test_arguments_that_do_not_fit_leave_the_key_free(house: House) -> None:
    with pytest.raises(InvalidArguments):
        await house.gate.call("breaks", {"how": 1}, caller=ME, idempotency_key="k")
    assert all(not entry.key for entry in await house.gate.journal.entries("acme"))
    assert (await house.pay({"n": 1}, "k")).data == 1


async def test_a_key_is_kept_until_its_time_is_over_and_no_longer(house: House) -> None:
    assert (await house.pay({"n": 1})).data == 1
    [entry] = await house.gate.journal.entries("acme")
    assert entry.expires_ns is not None
    day = 86_400 * 10**9
    assert abs(entry.expires_ns - entry.ended_ns - day) < 10**9
    # By the store's clock: as if it had ended a day ago, but for a minute; and then a minute more.
    await house.change(expires_ns=entry.expires_ns - day + 60 * 10**9)
    assert (await house.pay({"n": 1})).cached
    await house.change(expires_ns=entry.expires_ns - day - 60 * 10**9)
    again = await house.pay({"n": 1})
    assert (again.cached, again.data) == (False, 2)


async def test_a_call_that_takes_longer_than_its_key_is_kept_is_done_once(house: House) -> None:
    house.go.clear()
    calls = [asyncio.create_task(house.pay({"n": 1}, wait_s=20)) for _ in range(3)]
    while not house.done:  # noqa: ASYNC110  the tool says so
        await asyncio.sleep(0.01)
    # As if the key's time had begun with the call, long ago.
    await house.change(expires_ns=1)
    with pytest.raises(InProgress):
        await house.pay({"n": 1}, wait_s=0)
    house.go.set()
    outputs = await asyncio.gather(*calls)
    assert [one.data for one in outputs] == [1] * 3
    assert len(house.done) == 1


async def test_no_secret_of_the_arguments_is_in_a_key_or_an_event(house: House) -> None:
    told: list[Event] = []
    turn = Turn(group="t", id="1", emit=told.append)
    args = {"ticket": "https://ann:S3cretPassw0rd@desk/7", "to": "ann"}
    assert (await house.gate.call("mail", args, caller=ME, turn=turn)).data == "ann"
    await house.pay({"n": 1}, "https://ann:S3cretPassw0rd@desk/7")
    again = await house.gate.call("mail", args, caller=ME, turn=turn)
    repeated = await house.pay({"n": 1}, "https://ann:S3cretPassw0rd@desk/7")
    assert (again.cached, repeated.cached) == (True, True), "it is the same key all the same"
    entries = await house.gate.journal.entries("acme")
    assert len({entry.key for entry in entries if entry.key}) == 2
    assert "S3cret" not in repr(entries)
    assert len(told) == 2
    assert "S3cret" not in repr(told)
    assert all("idempotency_key" not in event.payload for event in told)


async def test_a_key_of_long_values_is_as_short_as_any(house: House) -> None:
    turn = Turn(group="t", id="1")
    args = {"ticket": "".join(chr(33 + number % 90) for number in range(50_000)), "to": "ann"}
    await house.gate.call("mail", args, caller=ME, turn=turn)
    assert (await house.gate.call("mail", args, caller=ME, turn=turn)).cached
    [entry] = await house.gate.journal.entries("acme")
    assert len(entry.key) < 100


async def test_what_nobody_knows_the_end_of_keeps_its_key_also_then(house: House) -> None:
    await house.gate.call("breaks", {"how": "x"}, caller=ME, idempotency_key="k")
    await house.change(expires_ns=1)
    output = await house.gate.call("breaks", {"how": "x"}, caller=ME, idempotency_key="k")
    assert (output.cached, house.done) == (True, ["x"])


async def test_a_later_turn_gets_the_result_of_the_mail_that_is_on_its_way(house: House) -> None:
    house.go.clear()
    args = {"ticket": "7", "to": "ann"}
    first = asyncio.create_task(
        house.gate.call("mail", args, caller=ME, turn=Turn(group="t", id="1"), wait_s=20)
    )
    while not house.done:  # noqa: ASYNC110  the tool says so
        await asyncio.sleep(0.01)
    second = asyncio.create_task(
        house.gate.call("mail", args, caller=ME, turn=Turn(group="t", id="2"), wait_s=20)
    )
    while not (await house.gate.journal.entries("acme"))[0].wanted_by:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    house.go.set()
    early, late = await first, await second
    assert (late.status, late.data, late.cached) == ("success", "ann", True)
    assert (early.status, early.data) == ("superseded", None)
    assert house.done == ["ann"]


async def test_a_later_turn_that_writes_to_somebody_else_is_told_of_the_conflict(
    house: House,
) -> None:
    turn = Turn(group="t", id="1")
    await house.gate.call("mail", {"ticket": "7", "to": "ann"}, caller=ME, turn=turn)
    later = Turn(group="t", id="2")
    with pytest.raises(IdempotencyConflict):
        await house.gate.call("mail", {"ticket": "7", "to": "bob"}, caller=ME, turn=later)
    # Without a field that makes it the same business it is another call.
    assert (await house.gate.call("pay", {"to": "ann"}, caller=ME, turn=turn)).data == 2
    assert (await house.gate.call("pay", {"to": "bob"}, caller=ME, turn=later)).data == 3
    assert (await house.gate.call("pay", {"to": "bob"}, caller=ME, turn=turn)).cached
    assert house.done == ["ann", {"to": "ann"}, {"to": "bob"}]


@pytest.mark.parametrize(
    "damage", [{"result": '{"status": "succ'}, {"result": '{"status": "newer"}'}, {"result": "7"}]
)
async def test_a_record_that_cannot_be_read_is_an_error_and_nothing_runs(
    house: House, damage: dict[str, str]
) -> None:
    await house.pay({"n": 1})
    await house.change(**damage)
    with pytest.raises(StoreMismatch):
        await house.pay({"n": 1})
    assert len(house.done) == 1


async def test_a_state_of_a_newer_version_is_an_error_and_nothing_runs(house: House) -> None:
    await house.pay({"n": 1})
    await house.change(state="hibernating")
    with pytest.raises(StoreMismatch):
        await house.pay({"n": 1})
    assert len(house.done) == 1


async def test_an_operator_runs_it_again_under_a_new_key_as_often_as_needed(house: House) -> None:
    first = await house.gate.call("breaks", {"how": "x"}, caller=ME, idempotency_key="k")
    settling, again = house.gate.settling, list[Output]()
    for _ in range(2):
        again.append(await settling.again("acme", first.call_id, who="boss", why="it was lost"))
        # Its end is unknown too: without a word on it there would not be another.
        last = again[-1].call_id
        await settling.settle("acme", last, happened=False, who="boss", why="looked")
    assert len(house.done) == 3
    assert len({first.call_id, *(one.call_id for one in again)}) == 3
    linked = [one.again_of for one in await house.gate.journal.entries("acme")]
    assert linked.count(first.call_id) == 2
