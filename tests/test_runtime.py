"""The front door of the library: open, add, discover, call, reload, close."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.house import ME, open_gate, states
from toolgate import Call, Caller, Toolgate, Turn, tool
from toolgate.errors import (
    InvalidArguments,
    InvalidSpecs,
    NameClash,
    SettingsInvalid,
    StoreUnavailable,
    ToolNotFound,
)
from toolgate.settings.settings import Settings, Store
from toolgate.tools.table import table


@tool(effect="irreversible", requires_confirmation=True, idempotency_key=["invoice_id"])
async def send_invoice(invoice_id: str, amount: float) -> dict[str, Any]:
    """Send an invoice to the customer."""
    return {"sent": invoice_id, "amount": amount}


@pytest.mark.req("X1", "V2")
async def test_the_example_of_the_library_works(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text("[tools]\nbuiltin = ['echo', 'read_output', 'timestamp']\n", "utf-8")
    async with Toolgate.open(file) as gate:
        gate.add(send_invoice)
        me = Caller(tenant="acme", agent="billing", user="ann", persona="clerk", roles=("finance",))
        specs = await gate.discover(me)
        assert [spec.name for spec in specs] == ["echo", "read_output", "send_invoice", "timestamp"]
        invoice = {"invoice_id": "i-1", "amount": 3.5}
        out = await gate.call("send_invoice", invoice, caller=me, turn=Turn(group="t-17"))
        assert out.status == "pending_approval"
        out = await gate.call("echo", {"text": "hi"}, caller=me, turn=Turn(group="t-17"))
        assert out.ok
        box = gate.toolbox(me, turn=Turn(group="t-18"))
        assert len(box.tools(format="openai")) == 4
        assert box.unavailable() == []


async def test_a_text_and_a_path_open_the_same_file_and_nothing_opens_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolgate.toml").write_text("[tools]\nbuiltin = ['echo']\n", "utf-8")
    for settings in ("toolgate.toml", tmp_path / "toolgate.toml"):
        async with Toolgate.open(settings) as gate:
            assert list(gate.catalog.current.specs) == ["echo"]
    async with Toolgate.open() as gate:
        assert list(gate.catalog.current.specs) == sorted(table())


async def test_a_start_that_cannot_be_made_leaves_nothing_running(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(SettingsInvalid, match="cannot be read"):
        async with Toolgate.open(tmp_path / "no_such.toml"):
            pass
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "bad.yaml").write_text("tools: [{nme: x}]", "utf-8")
    with pytest.raises(InvalidSpecs, match="nme"):
        async with open_gate(tmp_path):
            pass
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(StoreUnavailable):
        async with Toolgate.open(
            Settings(root=tmp_path, store=Store(url="sqlite:///file/toolgate.db"))
        ):
            pass
    tasks = {task.get_name() for task in asyncio.all_tasks()}
    assert not {name for name in tasks if name.startswith("toolgate")}
    assert threading.active_count() <= before + 3


@pytest.mark.req("C4")
async def test_a_batch_of_functions_is_added_whole_or_not_at_all(gate: Toolgate) -> None:
    def made(number: int) -> Any:
        async def run() -> int:
            return number

        run.__name__ = f"tool_{number}"
        return tool(effect="pure")(run)

    revision = gate.catalog.current.revision
    specs = gate.add(*(made(number) for number in range(200)))
    assert len(specs) == 200
    assert gate.catalog.current.revision == revision + 1, "one snapshot for all of them"
    assert (await gate.call("tool_137", caller=ME)).data == 137
    for clash in (made(7), made(300)):
        with pytest.raises(NameClash, match="tool_7"):
            gate.add(clash, made(7))
    assert gate.catalog.current.get("tool_300") is None
    assert (await gate.call("tool_7", caller=ME)).data == 7


@pytest.mark.req("C2")
async def test_fields_given_when_adding_win_over_the_decorator(gate: Toolgate) -> None:
    [spec] = gate.add(send_invoice, name="mail_invoice", requires_confirmation=False)
    assert (spec.name, spec.requires_confirmation, spec.effect) == (
        "mail_invoice",
        False,
        "irreversible",
    )
    args = {"invoice_id": "i-1", "amount": 3.5}
    assert (await gate.call("mail_invoice", args, caller=ME)).data["sent"] == "i-1"


async def test_a_clash_of_a_function_with_a_file_names_both(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    text = "tools: [{name: send_invoice, config: {module: math, function: sqrt}}]"
    (tmp_path / "tools" / "mine.yaml").write_text(text, "utf-8")
    async with open_gate(tmp_path) as gate:
        with pytest.raises(NameClash) as raised:
            gate.add(send_invoice)
    assert "tools/mine.yaml" in raised.value.message
    assert "test_runtime.send_invoice" in raised.value.message


MODULE = '''\
"""Two versions of one tool."""

import asyncio


async def first(version: str) -> str:
    return f"first for {version}"


async def second(version: str) -> str:
    return f"second for {version}"
'''


def write_version(root: Path, function: str) -> None:
    text = f"""\
tools:
  - name: versioned
    config: {{module: two_versions, function: {function}}}
    effect: irreversible
    input_schema: {{type: object, properties: {{version: {{type: string, const: {function}}}}}}}
"""
    (root / "tools" / "versioned.yaml").write_text(text, "utf-8")


@pytest.mark.req("X1", "C2")
async def test_a_call_granted_before_a_reload_runs_the_version_it_was_granted(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "two_versions.py").write_text(MODULE, "utf-8")
    write_version(tmp_path, "first")
    async with open_gate(tmp_path) as gate:
        calling = asyncio.create_task(gate.call("versioned", {"version": "first"}, caller=ME))
        # The intent is being written now; the function has not been looked up yet.
        await asyncio.sleep(0)
        granted = gate.catalog.current.specs["versioned"]
        write_version(tmp_path, "second")
        await gate.catalog.reload()
        assert gate.catalog.current.specs["versioned"].fingerprint != granted.fingerprint
        output = await calling
        after = await gate.call("versioned", {"version": "second"}, caller=ME)
        [newer, older] = await gate.journal.entries("acme")
    assert (output.data, after.data) == ("first for first", "second for second")
    assert older.fingerprint == granted.fingerprint != newer.fingerprint


@pytest.mark.req("X1", "C2")
async def test_while_calls_run_and_the_catalog_reloads_every_call_has_one_version(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "two_versions.py").write_text(MODULE, "utf-8")
    write_version(tmp_path, "first")
    wanted = asyncio.Event()

    async def reloads(gate: Toolgate) -> None:
        for number in range(30):
            write_version(tmp_path, ("second", "first")[number % 2])
            if number % 5 == 4:
                # A broken version keeps the last good one.
                (tmp_path / "tools" / "versioned.yaml").write_text("tools: [{", "utf-8")
            await gate.catalog.reload()
        wanted.set()

    async def calls(gate: Toolgate) -> int:
        count = 0
        while not wanted.is_set():
            spec = gate.catalog.current.specs["versioned"]
            version = spec.input_schema.value()["properties"]["version"]["const"]
            try:
                output = await gate.call("versioned", {"version": version}, caller=ME)
            except InvalidArguments:
                # The catalog moved on between the look above and the decision.
                continue
            assert output.data == f"{version} for {version}"
            count += 1
        return count

    async with open_gate(tmp_path) as gate:
        async with asyncio.TaskGroup() as group:
            group.create_task(reloads(gate))
            callers = [group.create_task(calls(gate)) for _ in range(8)]
        assert sum(task.result() for task in callers) > 8
        ends = {(state, code) for _tool, state, code in await states(gate)}
        assert ("succeeded", "") in ends
        assert ends <= {("succeeded", ""), ("failed", "invalid_arguments")}


async def test_a_tool_that_is_gone_after_a_reload_is_missing_and_its_running_call_ends(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "two_versions.py").write_text(MODULE, "utf-8")
    write_version(tmp_path, "first")
    async with open_gate(tmp_path) as gate:
        calling = asyncio.create_task(gate.call("versioned", {"version": "first"}, caller=ME))
        await asyncio.sleep(0)
        (tmp_path / "tools" / "versioned.yaml").unlink()
        await gate.catalog.reload()
        assert (await calling).data == "first for first"
        with pytest.raises(ToolNotFound):
            await gate.call("versioned", {"version": "first"}, caller=ME)


@pytest.mark.req("C5")
async def test_what_an_operator_switched_stays_when_the_house_opens_again(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.set_tool("echo", enabled=False)
    async with open_gate(tmp_path) as gate:
        assert not gate.toolbox(ME).is_available("echo")
        assert gate.toolbox(ME).is_available("timestamp")


@pytest.mark.req("X1")
async def test_call_ids_are_unique_and_sort_by_time(gate: Toolgate) -> None:
    outputs = [await gate.call("echo", {"text": "x"}, caller=ME) for _ in range(200)]
    ids = [output.call_id for output in outputs]
    assert len(set(ids)) == 200
    assert ids == sorted(ids)


async def test_a_tool_can_call_another_through_the_same_door(gate: Toolgate) -> None:
    @tool(effect="pure")
    async def outer(call: Call) -> Any:
        return (await gate.call("echo", {"text": "inner"}, caller=call.caller)).data

    gate.add(outer)
    assert (await gate.call("outer", caller=ME)).data == {"text": "inner"}
    assert {tool_name for tool_name, _state, _code in await states(gate)} == {"outer", "echo"}


@pytest.mark.req("T3", "C5")
async def test_a_built_in_tool_without_its_extra_says_how_to_get_it(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not gate.catalog.current.unusable
    row = msgspec.structs.replace(table()["echo"], needs=("no_such_module",), extra="tools")
    monkeypatch.setattr("toolgate.tools.provider.table", lambda: {"echo": row})
    await gate.catalog.reload()
    deciding = (await gate.explain("echo", caller=ME)).deciding
    assert deciding.reason.endswith("make install EXTRAS=tools")
    with pytest.raises(ToolNotFound):
        await gate.call("echo", {"text": "x"}, caller=ME)
    monkeypatch.undo()
    await gate.catalog.reload()
    told = (await gate.call("timestamp", {"format": "%Y"}, caller=ME)).data
    assert told["timestamp"].isdigit()
