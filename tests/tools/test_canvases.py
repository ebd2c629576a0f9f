"""Canvases: panes under many hands, graphs that are valid, and edits that come back."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.asking import ME, opened, told
from toolgate import Caller, Toolgate
from toolgate.errors import ToolError
from toolgate.shelf import Place
from toolgate.tools.canvas import failures, gallery, panes
from toolgate.tools.canvas.canvas import read_canvas
from toolgate.tools.canvas.difference import count, difference

pytestmark = pytest.mark.req("T2", "T3")
OTHERS = [
    Caller(tenant="acme", agent="boss"),
    Caller(tenant="acme", agent="clerk", user="ann"),
    Caller(tenant="globex", agent="clerk"),
]
_TEXT = st.text(max_size=20)
_NODE = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abcdef"),
        "type": st.just("text"),
        "x": st.integers(-99, 99),
        "y": st.integers(-99, 99),
        "width": st.integers(1, 99),
        "height": st.integers(1, 99),
        "text": _TEXT,
    },
    optional={"color": st.sampled_from(["1", "6", "#a0B1c2"])},
)
_NODES = st.lists(_NODE, max_size=6, unique_by=lambda node: node["id"])


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    async with opened(tmp_path) as found:
        yield found


async def test_whatever_is_appended_at_the_same_time_stands_there_once(gate: Toolgate) -> None:
    calls = [
        told(gate, "canvas_append", session_id="s", content=f"line {number}")
        for number in range(25)
    ]
    found = await asyncio.gather(*calls)
    assert sorted(one["position"] for one in found) == list(range(1, 26))
    read = await told(gate, "canvas_read", session_id="s")
    lines = [item["content"] for item in read["items"]]
    assert sorted(lines) == sorted(f"line {number}" for number in range(25))


async def test_appending_is_taken_back(gate: Toolgate) -> None:
    await told(gate, "canvas_append", session_id="s", content="stays")
    args = {"session_id": "s", "content": "a slip"}
    output = await gate.call("canvas_append", args, caller=ME)
    await gate.undo(caller=ME, call_id=output.call_id)
    read = await told(gate, "canvas_read", session_id="s")
    assert [item["content"] for item in read["items"]] == ["stays"]


async def test_panes_and_sessions_have_an_end(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panes, "MOST_ITEMS", 1)
    monkeypatch.setattr(panes, "MOST_PANES", 1)
    monkeypatch.setattr(panes, "MOST_SESSIONS", 1)
    await told(gate, "canvas_append", session_id="old", content=1)
    for more in ({"content": 2}, {"content": 2, "pane": "another"}):
        output = await gate.call("canvas_append", {"session_id": "old", **more}, caller=ME)
        assert output.error is not None
    await told(gate, "canvas_append", session_id="new", content=1)
    assert (await told(gate, "canvas_read", session_id="old"))["count"] == 0


async def _seen(gate: Toolgate, caller: Caller) -> tuple[int, int]:
    read = await told(gate, "canvas_read", caller, session_id="s")
    return read["count"], (await told(gate, "list_canvases", caller))["count"]


async def test_nobody_else_sees_a_pane_or_a_canvas(gate: Toolgate) -> None:
    await told(gate, "canvas_append", session_id="s", content="mine")
    await told(gate, "import_canvas_edits", name="plan", canvas={})
    assert await _seen(gate, ME) == (1, 1)
    # Another user of the same agent has their own.
    for other in OTHERS:
        assert await _seen(gate, other) == (0, 0)


async def test_without_the_guard_they_would(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everywhere(_tenant: str, kind: str, _owner: str) -> Place:
        return Place("acme", kind, "everybody")

    monkeypatch.setattr(panes, "Place", everywhere)
    monkeypatch.setattr(gallery, "Place", everywhere)
    await told(gate, "canvas_append", session_id="s", content="mine")
    await told(gate, "import_canvas_edits", name="plan", canvas={})
    for other in OTHERS:
        assert await _seen(gate, other) == (1, 1)


async def _failures(gate: Toolgate) -> dict[str, Any]:
    """A call that fails, one that follows, and the same tool when it succeeds."""
    missing = {"path": "missing.txt"}
    assert not (await gate.call("read_file", missing, caller=ME)).ok
    await told(gate, "write_file", path="missing.txt", content="here")
    await told(gate, "read_file", path="missing.txt")
    return await told(gate, "export_reasoning_canvas", graph_type="failure", path="failure.canvas")


async def test_failures_are_drawn_with_what_followed(gate: Toolgate, tmp_path: Path) -> None:
    found = await _failures(gate)
    texts = [node.get("text", "") for node in found["canvas"]["nodes"]]
    assert any("**read_file** failed" in text and "tool_error" in text for text in texts)
    assert sorted(edge["label"] for edge in found["canvas"]["edges"]) == ["solved by", "then"]
    written = json.loads((tmp_path / "files" / found["path"]).read_text("utf-8"))
    assert written == found["canvas"]
    assert read_canvas(written).plain() == written
    # Nobody else's calls are among them.
    other = await told(gate, "export_reasoning_canvas", OTHERS[0], graph_type="failure")
    assert other["nodes"] == 0


async def test_others_calls_do_not_crowd_out_an_agents_failures(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_MOST_READ", 3)
    assert not (await gate.call("read_file", {"path": "missing.txt"}, caller=ME)).ok
    for _ in range(4):
        await told(gate, "echo", OTHERS[0], text="busy")
    found = await told(gate, "export_reasoning_canvas", graph_type="failure")
    assert "**read_file** failed" in str(found["canvas"])


async def test_what_a_person_edits_stays_and_is_told(gate: Toolgate, tmp_path: Path) -> None:
    first = await _failures(gate)
    path = tmp_path / "files" / first["path"]
    canvas = json.loads(path.read_text("utf-8"))
    failed, *others = [node for node in canvas["nodes"] if node["type"] == "text"]
    failed["text"] = "Known: the file was late."
    gone = others[0]["id"]
    canvas["nodes"] = [node for node in canvas["nodes"] if node["id"] != gone]
    canvas["edges"] = [
        edge for edge in canvas["edges"] if gone not in {edge["fromNode"], edge["toNode"]}
    ]
    path.write_text(json.dumps(canvas), "utf-8")
    changes = await told(gate, "import_canvas_edits", path=first["path"])
    assert changes["name"] == "failure"
    assert [one["id"] for one in changes["nodes"]["changed"]] == [failed["id"]]
    assert [one["id"] for one in changes["nodes"]["removed"]] == [gone]
    again = await told(gate, "export_reasoning_canvas", graph_type="failure")
    nodes = {node["id"]: node for node in again["canvas"]["nodes"]}
    assert nodes[failed["id"]]["text"] == "Known: the file was late."
    assert gone not in nodes


async def test_edits_of_a_file_come_back_to_the_canvas_that_was_exported_there(
    gate: Toolgate, tmp_path: Path
) -> None:
    await told(gate, "canvas_append", session_id="s", pane="hypothesis", content="It rains.")
    first = await told(gate, "export_reasoning_canvas", path="./reasoning.canvas")
    assert (first["name"], first["path"]) == ("all", "reasoning.canvas")
    path = tmp_path / "files" / first["path"]
    path.write_text(json.dumps({"nodes": [], "edges": []}), "utf-8")
    changes = await told(gate, "import_canvas_edits", path="reasoning.canvas")
    assert (changes["name"], changes["created"]) == ("all", False)
    removed = {one["id"] for one in changes["nodes"]["removed"]}
    assert removed == {node["id"] for node in first["canvas"]["nodes"]}
    # Who names a canvas means that one; and a file that nothing was exported to is named by itself.
    other = await told(gate, "import_canvas_edits", path="reasoning.canvas", name="mine")
    assert (other["name"], other["created"]) == ("mine", True)
    path.rename(path.with_name("moved.canvas"))
    moved = await told(gate, "import_canvas_edits", path="moved.canvas")
    assert (moved["name"], moved["created"]) == ("moved", True)


async def test_an_export_is_taken_back(gate: Toolgate, tmp_path: Path) -> None:
    args = {"path": "drawings/deep/one.canvas"}
    output = await gate.call("export_reasoning_canvas", args, caller=ME)
    assert (tmp_path / "files" / "drawings" / "deep" / "one.canvas").exists()
    await gate.undo(caller=ME, call_id=output.call_id)
    assert not (tmp_path / "files" / "drawings").exists()


async def test_a_canvas_is_in_no_file_that_others_read_unless_one_is_asked_for(
    gate: Toolgate, tmp_path: Path
) -> None:
    await told(gate, "canvas_append", session_id="s", pane="hypothesis", content="a secret")
    output = await gate.call("export_reasoning_canvas", {}, caller=ME)
    assert (output.data["path"], "a secret" in str(output.data["canvas"])) == (None, True)
    assert list((tmp_path / "files").iterdir()) == []
    [kept] = (await told(gate, "list_canvases"))["canvases"]
    assert kept["path"] is None
    await gate.undo(caller=ME, call_id=output.call_id)
    # The positive control: who asks for a file gets one, which all tenants share.
    await told(gate, "export_reasoning_canvas", path="plan.canvas")
    seen = await told(gate, "read_file", OTHERS[2], path="plan.canvas")
    assert "a secret" in seen["text"]
    [kept] = (await told(gate, "list_canvases"))["canvases"]
    assert kept["path"] == "plan.canvas"


@given(before=_NODES, after=_NODES)
def test_what_is_told_to_have_changed_has(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    old, new = read_canvas({"nodes": before}), read_canvas({"nodes": after})
    told_of = difference(old, new)["nodes"]
    assert count(difference(old, old)) == 0
    kept = {node["id"]: dict(node) for node in old.plain()["nodes"]}
    for one in told_of["removed"]:
        del kept[one["id"]]
    for one in told_of["added"]:
        kept[one["id"]] = one
    for one in told_of["changed"]:
        for name, change in one["fields"].items():
            kept[one["id"]][name] = change["after"]
            if change["after"] is None:
                del kept[one["id"]][name]
    assert kept == {node["id"]: node for node in new.plain()["nodes"]}


@given(
    given_canvas=st.recursive(
        st.none() | _TEXT | st.floats(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["nodes", "edges", "id", "type", "x"]), inner)
        ),
    )
)
def test_anything_is_a_canvas_or_refused(given_canvas: Any) -> None:
    with contextlib.suppress(ToolError):
        assert read_canvas(given_canvas).plain().keys() == {"nodes", "edges"}
