"""On record before it happens, and with the end that is known, whatever goes wrong."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.house import ME, STORE, journal_rows, open_gate, states
from toolgate import Call, Caller, ToolError, Toolgate, Turn, tool
from toolgate.errors import InvalidArguments, StoreUnavailable
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun, Ended
from toolgate.ledger.machine import Action
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

CANARY = "canary-91ac"


@pytest.mark.req("S3", "X2", "O2")
@pytest.mark.parametrize("effect", ["idempotent", "irreversible"])
@pytest.mark.parametrize("is_async", [True, False])
async def test_while_a_side_effect_runs_its_intent_is_on_record(
    gate: Toolgate,
    tmp_path: Path,
    effect: Any,
    is_async: bool,  # noqa: FBT001
) -> None:
    seen: list[dict[str, Any]] = []

    def look(call: Call, amount: int) -> None:
        seen.extend(journal_rows(tmp_path, call.id))

    async def look_async(call: Call, amount: int) -> None:
        look(call, amount)

    marked = tool(effect=effect, name="look")
    gate.add(marked(look_async) if is_async else marked(look))
    caller = Caller(tenant="acme", agent="billing", user="ann", persona="clerk", session="s-1")
    turn = Turn(group="t-17", id="1")
    output = await gate.call("look", {"amount": 3}, caller=caller, turn=turn)

    [row] = seen
    assert (row["state"], row["success"]) == ("started", None)
    said = ("tenant_id", "agent_id", "user_id", "persona_id", "session_id", "turn_group")
    assert [row[name] for name in said] == ["acme", "billing", "ann", "clerk", "s-1", "t-17"]
    assert row["fingerprint"] == gate.catalog.current.specs["look"].fingerprint
    [after] = journal_rows(tmp_path, output.call_id)
    assert (after["state"], after["success"]) == ("succeeded", 1)


async def test_without_the_record_ahead_the_effect_would_happen_unrecorded(
    gate: Toolgate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unwritten(
        _journal: object, entry: Entry, *, may_start: bool, basis: Basis | None
    ) -> Begun:
        assert may_start
        assert basis is not None
        return Begun(msgspec.structs.replace(entry, fence=1), Action.RUN)

    monkeypatch.setattr("toolgate.store.journal.TableJournal.begin", unwritten)
    seen: list[int] = []

    @tool(effect="irreversible")
    async def look(call: Call) -> None:
        seen.append(len(journal_rows(tmp_path, call.id)))

    gate.add(look)
    await gate.call("look", caller=ME)
    assert seen == [0], "the guard is what the test above stands on"


@pytest.mark.req("S3")
async def test_no_record_no_side_effect(gate: Toolgate, tmp_path: Path) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    async def effect() -> None:
        ran.append("effect")

    gate.add(effect)
    with closing(sqlite3.connect(tmp_path / STORE)) as connection:
        connection.execute("DROP TABLE tool_execution_log")
        connection.commit()
    with pytest.raises(StoreUnavailable):
        await gate.call("effect", caller=ME)
    assert ran == []


OUTCOMES = {
    # effect: succeeded, ToolError, another exception, not JSON, wrong type for the function
    "pure": ["succeeded", "failed", "failed", "succeeded", "failed"],
    "idempotent": ["succeeded", "failed", "failed", "succeeded", "failed"],
    "compensatable": ["succeeded", "failed", "unknown", "succeeded", "failed"],
    "irreversible": ["succeeded", "failed", "unknown", "succeeded", "failed"],
}


@pytest.mark.req("S3", "X5")
@pytest.mark.parametrize("effect", OUTCOMES)
async def test_each_end_is_recorded_as_what_is_known_about_it(gate: Toolgate, effect: Any) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"how": {}}, "required": ["how"]}

    async def act(how: str) -> Any:
        if how == "tool_error":
            raise ToolError("not done")
        if how == "raise":
            raise ValueError(CANARY)
        return object() if how == "not_json" else how

    more: dict[str, Any] = {}
    if effect == "compensatable":
        more = {"compensation": {"tool": "echo", "args": {}}}
    gate.add(tool(effect=effect, input_schema=schema, **more)(act))
    for how in ("fine", "tool_error", "raise", "not_json"):
        await gate.call("act", {"how": how}, caller=ME)
    # The schema takes a number, the function does not: nothing ran.
    with pytest.raises(InvalidArguments):
        await gate.call("act", {"how": [1]}, caller=ME)
    on_record = await states(gate)
    assert [state for _tool, state, _code in on_record] == OUTCOMES[effect]
    assert [code for _tool, _state, code in on_record] == [
        "",
        "tool_error",
        "execution_failed",
        "invalid_output",
        "invalid_arguments",
    ]


@pytest.mark.req("S3")
async def test_an_unknown_end_is_told_as_unknown(gate: Toolgate) -> None:
    @tool(effect="irreversible")
    async def breaks() -> None:
        raise ValueError

    @tool(effect="idempotent")
    async def breaks_harmlessly() -> None:
        raise ValueError

    gate.add(breaks, breaks_harmlessly)
    told = (await gate.call("breaks", caller=ME)).error
    assert told is not None
    assert told.details == {"outcome": "unknown"}
    told = (await gate.call("breaks_harmlessly", caller=ME)).error
    assert told is not None
    assert told.details == {}


class NoEnd(MemoryJournal):
    """A store that goes away while the tool runs."""

    async def end(self, entry: Entry, *, again: bool = False) -> Ended:
        raise StoreUnavailable("The store cannot be used. Nothing was changed; try again.")


@pytest.mark.req("S3")
async def test_a_store_that_goes_away_after_the_effect_never_says_try_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    async def effect(fail: bool) -> None:  # noqa: FBT001
        ran.append("effect")
        if fail:
            raise ToolError("out of stock")

    journal = NoEnd()
    async with in_memory(effect, journal=journal) as house:
        done = await house.call("effect", {"fail": False}, caller=ME)
        assert done.error is not None
        assert (done.error.retryable, done.error.details) == (False, {"outcome": "unknown"})
        assert "ran, but its outcome could not be put on record" in done.error.message
        assert "try again" not in done.error.message
        failed = await house.call("effect", {"fail": True}, caller=ME)
        assert failed.error is not None
        assert failed.error.message == "out of stock", "the tool's own word is kept"
    assert len(ran) == 2
    assert [str(entry.state) for entry in journal.calls] == ["started", "started"]
    assert caplog.text.count("is not on record (StoreUnavailable)") == 2


@pytest.mark.req("S3", "X4")
async def test_a_caller_that_goes_away_while_the_outcome_is_written_does_not_lose_it() -> None:
    writing, go_on = asyncio.Event(), asyncio.Event()

    class Slow(MemoryJournal):
        async def end(self, entry: Entry, *, again: bool = False) -> Ended:
            writing.set()
            await go_on.wait()
            return await super().end(entry, again=again)

    @tool(effect="irreversible")
    async def effect() -> None:
        return None

    journal = Slow()
    async with in_memory(effect, journal=journal) as house:
        calling = asyncio.create_task(house.call("effect", caller=ME))
        await writing.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        go_on.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert [str(entry.state) for entry in journal.calls] == ["succeeded"]


@pytest.mark.req("S3", "X4")
async def test_a_caller_that_goes_away_while_the_intent_is_written_leaves_nothing_in_doubt() -> (
    None
):
    written, ran = asyncio.Event(), list[str]()

    class Slow(MemoryJournal):
        async def begin(
            self, entry: Entry, *, may_start: bool = True, basis: Basis | None = None
        ) -> Begun:
            begun = await super().begin(entry, may_start=may_start, basis=basis)
            written.set()
            await asyncio.Event().wait()
            return begun

    @tool(effect="irreversible")
    async def effect() -> None:
        ran.append("effect")

    journal = Slow()
    async with in_memory(effect, journal=journal) as house:
        calling = asyncio.create_task(house.call("effect", caller=ME))
        await written.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert ran == []
    [entry] = journal.calls
    assert (str(entry.state), entry.error_code) == ("failed", "cancelled")


@pytest.mark.req("O2")
async def test_every_call_has_exactly_one_record_also_a_refused_one(gate: Toolgate) -> None:
    with pytest.raises(InvalidArguments):
        await gate.call("echo", {}, caller=ME)
    [refused] = await gate.journal.entries("acme")
    assert (refused.state, refused.error_code) == ("failed", "invalid_arguments")
    outputs = await asyncio.gather(
        *(gate.call("echo", {"text": str(number)}, caller=ME) for number in range(40))
    )
    entries = await gate.journal.entries("acme")
    assert sorted(entry.call_id for entry in entries) == sorted(
        [refused.call_id, *(output.call_id for output in outputs)]
    )


@pytest.mark.req("V3")
async def test_one_tenants_records_are_not_anothers(gate: Toolgate) -> None:
    await gate.call("echo", {"text": "mine"}, caller=ME)
    assert len(await gate.journal.entries("acme")) == 1
    assert await gate.journal.entries("umbrella") == []


@pytest.mark.req("X5", "O2")
async def test_arguments_of_a_read_stand_on_record_as_a_digest_only(
    gate: Toolgate, tmp_path: Path
) -> None:
    @tool(effect="irreversible")
    async def effect(text: str) -> str:
        return text

    gate.add(effect)
    await gate.call("echo", {"text": CANARY}, caller=ME)
    entries = await gate.journal.entries("acme")
    assert all(entry.args_hash.startswith("sha256:") for entry in entries)
    for file in (tmp_path / STORE).parent.iterdir():
        assert CANARY.encode() not in file.read_bytes()
    # Those of a side effect are kept: somebody may have to look at what became of it.
    output = await gate.call("effect", {"text": CANARY}, caller=ME)
    [row] = journal_rows(tmp_path, output.call_id)
    assert json.loads(row["args"]) == {"text": CANARY}
    assert row["args_hash"].startswith("sha256:")


@pytest.mark.req("X5")
async def test_a_message_that_is_not_text_or_has_no_end_can_still_be_recorded(
    gate: Toolgate,
) -> None:
    @tool(effect="irreversible")
    async def undecodable() -> None:
        raise ToolError("no file " + b"\xff".decode("utf-8", "surrogateescape"))

    @tool(effect="pure")
    async def endless() -> None:
        raise ToolError("x" * 1_000_000)

    gate.add(undecodable, endless)
    output = await gate.call("undecodable", caller=ME)
    assert output.error is not None
    assert output.error.message == "no file \\udcff"
    await gate.call("endless", caller=ME)
    entries = await gate.journal.entries("acme")
    assert [entry.error_code for entry in entries] == ["tool_error", "tool_error"]
    assert max(len(entry.error_message) for entry in entries) <= 4_000


async def test_closing_writes_what_waits(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        for _ in range(25):
            await gate.call("echo", {"text": "x"}, caller=ME)
    async with open_gate(tmp_path) as gate:
        assert len(await gate.journal.entries("acme")) == 25
