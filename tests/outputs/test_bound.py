"""A result over its limit: a head at once, the rest in pieces, and never lost without a word."""

import asyncio
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.house import states
from tests.tools.means import means
from toolgate import Caller, Extension, Output, Priority, Toolgate, Turn, tool
from toolgate.call import Call
from toolgate.errors import InvalidArguments, StoreUnavailable, ToolError, ToolNotFound
from toolgate.executor import bound
from toolgate.executor.bound import Bound
from toolgate.ledger.outputs import Blob
from toolgate.settings.execution import Toolbox as ToolboxSettings
from toolgate.settings.settings import Settings
from toolgate.spec.redactor import PLAIN
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal
from toolgate.testing.outputs import MemoryOutputs
from toolgate.tools.executor.read_output import read_output

pytestmark = pytest.mark.req("X6")
ME = Caller(tenant="acme", agent="clerk")
# Nothing of a call is looked at before its arguments are.
NOBODYS = cast("Call", None)
TURN = Turn(group="t-1")
TEXT = "Zürich €" * 2_000
ran: list[int] = []


@tool(effect="pure")
async def report(rows: int) -> list[dict[str, Any]]:
    """Many rows."""
    return [{"row": row, "text": "Zürich €"} for row in range(rows)]


@tool(effect="pure")
async def letter(length: int) -> str:
    """A long text."""
    return TEXT[:length]


@tool(effect="irreversible")
async def act(rows: int) -> list[int]:
    """A side effect that tells much."""
    ran.append(rows)
    return list(range(rows))


@tool(effect="compensatable", compensation={"tool": "letter", "args": {"length": "$result.id"}})
async def order() -> dict[str, Any]:
    """A side effect that can be taken back."""
    return {"id": 7, "rows": ["x" * 100] * 100}


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def settings(root: Path, limit: int = 1_000, **more: Any) -> Settings:
    return Settings(root=root, toolbox=ToolboxSettings(output_limit=limit, **more))


async def whole(gate: Toolgate, data: dict[str, Any], length: int, caller: Caller = ME) -> str:
    """The head, and every piece from there."""
    text, at = data["head"], data["next"]
    while at is not None:
        given = {"reference": data["reference"], "offset": at, "length": length}
        piece = (await gate.call("read_output", given, caller=caller)).data
        assert piece["offset"] == at
        assert piece["size"] == data["size"]
        text, at = text + piece["text"], piece["next"]
    return text


@pytest.mark.parametrize("length", [1, 2, 3, 997, 20_000])
async def test_a_large_result_is_read_in_pieces_without_losing_a_character(
    tmp_path: Path, length: int
) -> None:
    rows = 4 if length < 5 else 400
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(report, output_limit=100)
        output = await gate.call("report", {"rows": rows}, caller=ME)
        data = output.data
        assert output.ok
        assert (data["media_type"], data["read_with"]) == ("application/json", "read_output")
        text = await whole(gate, data, length)
    assert len(text.encode()) == data["size"]
    assert orjson.loads(text) == await report(rows)


async def test_a_long_text_is_kept_as_text(tmp_path: Path) -> None:
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(letter)
        data = (await gate.call("letter", {"length": 9_000}, caller=ME)).data
        assert data["media_type"] == "text/plain"
        assert TEXT.startswith(data["head"])
        assert 400 < len(data["head"].encode()) <= 500
        assert await whole(gate, data, 1_000) == TEXT[:9_000]


async def test_what_fits_is_answered_as_it_is(tmp_path: Path) -> None:
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(report, letter)
        assert (await gate.call("report", {"rows": 3}, caller=ME)).data == await report(3)
        assert (await gate.call("letter", {"length": 500}, caller=ME)).data == TEXT[:500]
        own = await gate.call("letter", {"length": 5_000}, caller=ME)
        assert "head" in own.data
        gate.add(letter, name="patient", output_limit=100_000)
        assert (await gate.call("patient", {"length": 5_000}, caller=ME)).data == TEXT[:5_000]


OTHERS = [
    Caller(tenant="other", agent="clerk"),
    Caller(tenant="acme", agent="intern"),
    Caller(tenant="acme", agent="clerk", user="ann"),
]


async def test_nobody_else_reads_it_and_missing_and_foreign_look_alike(tmp_path: Path) -> None:
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(report)
        data = (await gate.call("report", {"rows": 100}, caller=ME)).data
        given = {"reference": data["reference"]}
        mine = await gate.call("read_output", given, caller=ME)
        assert mine.ok
        missing = await gate.call("read_output", {"reference": "out_" + "0" * 64}, caller=ME)
        assert missing.error is not None
        for other in OTHERS:
            found = await gate.call("read_output", given, caller=other)
            assert found.error == missing.error
        handed_on = ME.delegate("helper")
        assert (await gate.call("read_output", given, caller=handed_on)).ok


async def test_reading_is_under_the_same_gate(tmp_path: Path) -> None:
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(report)
        data = (await gate.call("report", {"rows": 100}, caller=ME)).data
        await gate.tenancy.set_tenant_tool("acme", "read_output", enabled=False)
        with pytest.raises(ToolNotFound):
            await gate.call("read_output", {"reference": data["reference"]}, caller=ME)


async def test_what_a_tool_made_is_not_read_once_the_tool_was_taken_away(tmp_path: Path) -> None:
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(report)
        data = (await gate.call("report", {"rows": 100}, caller=ME)).data
        given = {"reference": data["reference"]}
        assert (await gate.call("read_output", given, caller=ME)).ok
        missing = await gate.call("read_output", {"reference": "out_" + "0" * 64}, caller=ME)
        await gate.tenancy.set_tenant_tool("acme", "report", enabled=False)
        refused = await gate.call("read_output", given, caller=ME)
        assert (refused.ok, refused.error) == (False, missing.error)
        await gate.tenancy.set_tenant_tool("acme", "report", enabled=True)
        assert (await gate.call("read_output", given, caller=ME)).ok


@pytest.mark.parametrize("offset", [67_108_865, 1 << 63, 1 << 200])
async def test_an_offset_behind_every_output_is_told_before_the_store_is_asked(
    tmp_path: Path, offset: int
) -> None:
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(report)
        data = (await gate.call("report", {"rows": 100}, caller=ME)).data
        given = {"reference": data["reference"], "offset": offset}
        with pytest.raises(InvalidArguments, match="offset"):
            await gate.call("read_output", given, caller=ME)
        # A catalog that was written before says nothing about it: the tool does.
        with pytest.raises(ToolError, match="An offset is from 0"):
            await read_output(means(), NOBODYS, reference=data["reference"], offset=offset)


@pytest.mark.parametrize(
    "given",
    [
        {"reference": "x", "length": 0},
        {"reference": "x", "offset": -1},
        {"reference": "x", "length": 1 << 40},
        {"reference": ["x"]},
        {"reference": "../../etc/passwd"},
        {"reference": "out_%' OR '1'='1"},
    ],
)
async def test_odd_questions_get_no_output(tmp_path: Path, given: dict[str, Any]) -> None:
    async with Toolgate.open(settings(tmp_path)) as gate:
        try:
            assert not (await gate.call("read_output", given, caller=ME)).ok
        except Exception as error:  # noqa: BLE001
            assert getattr(error, "code", "") == "invalid_arguments"  # noqa: PT017


async def test_a_replay_names_the_same_reference_and_runs_nothing(tmp_path: Path) -> None:
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(act)
        first = await gate.call("act", {"rows": 1_000}, caller=ME, turn=TURN)
        again = await gate.call("act", {"rows": 1_000}, caller=ME, turn=TURN)
        assert again.cached
        assert again.data == first.data
        assert orjson.loads(await whole(gate, again.data, 5_000)) == list(range(1_000))
    assert ran == [1_000]


async def test_how_to_take_it_back_is_made_of_the_whole_result() -> None:
    journal = MemoryJournal()
    keep = Bound(MemoryOutputs(), limit=1_000, redactor=PLAIN)
    async with in_memory(order, letter, journal=journal, extensions=[keep]) as house:
        output = await house.call("order", caller=ME)
    data: object = output.data
    assert type(data) is dict
    assert "head" in data
    assert orjson.loads(journal.calls[0].plan)["args"] == {"length": 7}


class Full(MemoryOutputs):
    async def keep(self, blob: Blob) -> None:
        raise StoreUnavailable("The disk is full.")


async def test_what_cannot_be_kept_is_an_error_of_a_read_and_a_note_of_a_side_effect() -> None:
    journal = MemoryJournal()
    keep = Bound(Full(), limit=1_000, redactor=PLAIN)
    async with in_memory(report, act, journal=journal, extensions=[keep]) as house:
        with pytest.raises(StoreUnavailable, match="too large to be answered at once"):
            await house.call("report", {"rows": 100}, caller=ME)
        output = await house.call("act", {"rows": 1_000}, caller=ME, turn=TURN)
        again = await house.call("act", {"rows": 1_000}, caller=ME, turn=TURN)
    assert output.ok
    assert output.data["reference"] is None
    assert "lost" in output.data["note"]
    assert again.data == output.data
    assert ran == [1_000]
    assert [str(entry.state) for entry in journal.calls] == ["failed", "succeeded"]


async def test_a_result_beyond_all_bounds_is_refused_and_its_effect_stays_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound, "_MOST", 2_000)
    async with Toolgate.open(settings(tmp_path)) as gate:
        gate.add(act)
        output = await gate.call("act", {"rows": 1_000}, caller=ME)
        assert output.error is not None
        assert output.error.code == "invalid_output"
        assert "3,891 bytes" in output.error.message
        assert await states(gate) == [("act", "succeeded", "invalid_output")]


async def test_what_an_extension_next_to_the_tool_makes_large_is_bounded_too() -> None:
    class Talkative(Extension):
        priority = Priority.LOWEST

        def after(self, call: Any, output: Output) -> Output:
            return Output(status="success", data="x" * 5_000, call_id=output.call_id)

    keep = Bound(MemoryOutputs(), limit=1_000, redactor=PLAIN)
    async with in_memory(report, extensions=[keep, Talkative()]) as house:
        assert (await house.call("report", {"rows": 1}, caller=ME)).data["size"] == 5_000


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60), st.integers(1, 30))
def test_pieces_of_any_text_add_up_to_it(text: str, length: int) -> None:
    async def read() -> str:
        outputs = MemoryOutputs()
        content = text.encode()
        await outputs.keep(
            Blob(
                tenant="acme",
                scope="clerk/0/",
                digest="sha256:x",
                tool="t",
                media_type="text/plain",
                content=content,
            )
        )
        async with in_memory() as house:
            stands_on = means(outputs=outputs)

            async def read_output_of_ours(
                call: Call, reference: str, offset: int = 0, length: int = 20_000
            ) -> Any:
                return await read_output(
                    stands_on, call, reference=reference, offset=offset, length=length
                )

            house.add(read_output_of_ours, name="read_output", effect="pure")
            parts: list[str] = []
            at: int | None = 0
            while at is not None:
                args = {"reference": "out_x", "offset": at, "length": length}
                piece = (await house.call("read_output", args, caller=ME)).data
                parts.append(piece["text"])
                assert piece["next"] is None or piece["next"] > at
                at = piece["next"]
            return "".join(parts)

    assert asyncio.run(read()) == text
