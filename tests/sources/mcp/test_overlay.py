"""What an operator says about a server's tools, in a file that is checked whole."""

from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.sources.mcp.served import ME, PLAIN, served, text, tool
from toolgate.errors import InvalidSpecs
from toolgate.sources.mcp import overlay
from toolgate.spec.effect import Effect
from toolgate.testing.upstream import MemoryUpstream
from toolgate.upstreams.upstream import Kind

pytestmark = pytest.mark.req("P3")
OVERLAY = """
tools:
  "get_*":
    effect: pure
  get_secret:
    requires_approval: true
  write:
    effect: compensatable
    compensation: {tool: "mcp:files:remove", args: {text: "$args.text"}}
    rate_limit: 60/minute
    timeout: 5
    on_error: not_done
  remove:
    effect: idempotent
    enabled: false
  wirte:
    effect: pure
"""
SETTINGS = PLAIN.model_copy(update={"overlay": "files.yaml"})


def files() -> MemoryUpstream:
    names = ("get_a", "get_secret", "write", "remove", "other")
    found = MemoryUpstream("files", tools=[tool(name) for name in names])
    found.tools = dict.fromkeys(names, text("done"))
    return found


async def test_what_an_operator_says_holds(tmp_path: Path) -> None:
    (tmp_path / "files.yaml").write_text(OVERLAY)
    async with served({"files": files()}, SETTINGS, root=tmp_path) as house:
        specs = {name[10:]: spec for name, spec in house.gate.catalog.current.specs.items()}
        assert {name: spec.effect for name, spec in specs.items()} == {
            "get_a": Effect.PURE,
            "get_secret": Effect.PURE,
            "write": Effect.COMPENSATABLE,
            "remove": Effect.IDEMPOTENT,
            "other": Effect.IRREVERSIBLE,
        }
        asks = [name for name, spec in specs.items() if spec.requires_confirmation]
        assert asks == ["other"]
        assert specs["get_secret"].requires_approval
        assert specs["write"].timeout == 5
        assert "mcp:files:remove" not in await house.names()
        said = "files.yaml:16: the server has no tool 'wirte'; did you mean 'write'?"
        assert said in house.problem("files")


async def test_what_was_done_is_taken_back_by_the_tool_that_the_operator_names(
    tmp_path: Path,
) -> None:
    (tmp_path / "files.yaml").write_text(OVERLAY.replace("    enabled: false\n", ""))
    upstream = files()
    async with served({"files": upstream}, SETTINGS, root=tmp_path) as house:
        done = await house.gate.call("write", {"text": "x"}, caller=ME)
        await house.gate.undo(caller=ME, call_id=done.call_id)
        asked = [(one.params["name"], one.params["arguments"]) for one in upstream.heard]
        assert asked == [("write", {"text": "x"}), ("remove", {"text": "x"})]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("tools: {a: {effect: pur}}", "o.yaml:1: a.effect is 'pur'"),
        ("tools:\n  a:\n    efect: pure", "o.yaml:3: a.efect is no field of an overlay"),
        ("tools:\n  a:\n    input_schema: {}", "o.yaml:3: a.input_schema is no field"),
        ("tools:\n  a: pure", "o.yaml:2: a is a text"),
        ("tools: []", "o.yaml:1: has another shape"),
        ("tool: {}", "o.yaml:1: has another shape"),
        ("tools:\n  a:\n    on_error: maybe", "o.yaml:3: a.on_error is no meaning"),
        ("tools:\n  a: {timeout: -1}\n  b: {retry: 99}", "o.yaml:3: b.retry"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, said: str, problem: str) -> None:
    path = tmp_path / "o.yaml"
    path.write_text(said)
    with pytest.raises(InvalidSpecs) as caught:
        overlay.read(path, path.name)
    assert problem in str(caught.value)


async def test_a_contradiction_leaves_its_tool_out_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "files.yaml").write_text("tools:\n  write: {effect: compensatable}")
    async with served({"files": files()}, SETTINGS, root=tmp_path) as house:
        assert "mcp:files:write" not in house.states()
        assert "files.yaml:2: compensation is missing" in house.problem("files")


@pytest.mark.parametrize(
    ("entry", "is_held"),
    [
        ("wirte: {requires_approval: true}", True),
        ("WRITE: {rate_limit: 1/minute}", True),
        ("wirte: {effect: irreversible}", True),
        ("wirte: {effect: pure}", False),
        ("wirte: {display_name: Write}", False),
        ("wirte: {requires_approval: true}\n  write: {effect: pure}", False),
        ("something_else: {requires_approval: true}", False),
        ("'wirt*': {requires_approval: true}", False),
    ],
)
async def test_a_misspelt_name_leaves_no_tool_looser_than_was_written(
    tmp_path: Path, entry: str, is_held: Any
) -> None:
    """What stands for `write` without it is believed of `w*`; the name would have been stricter."""
    (tmp_path / "files.yaml").write_text(f'tools:\n  "w*": {{effect: pure}}\n  {entry}\n')
    async with served({"files": files()}, SETTINGS, root=tmp_path) as house:
        assert ("mcp:files:write" not in await house.names()) == is_held
        assert ("files.yaml:3" in house.states()["mcp:files:write"]) == is_held
        assert "files.yaml:3" in house.problem("files")
        assert "mcp:files:get_a" in await house.names()
        assert await house.desk.waiting("files") == [], "there is nothing to agree to"
        (tmp_path / "files.yaml").write_text("tools:\n  write: {requires_approval: true}")
        await house.gate.catalog.reload()
        assert "mcp:files:write" in await house.names()
        assert house.problem("files") == ""


async def test_an_overlay_that_breaks_leaves_what_it_said_and_changes_are_still_seen(
    tmp_path: Path,
) -> None:
    file = tmp_path / "files.yaml"
    file.write_text("tools:\n  write: {requires_approval: true}")
    upstream = files()
    async with served({"files": upstream}, SETTINGS, root=tmp_path) as house:
        file.write_text("tools:\n  write: {requires_aproval: true}")
        await house.gate.catalog.reload()
        assert house.gate.catalog.current.specs["mcp:files:write"].requires_approval
        said = (
            "its overlay cannot be used: files.yaml:2: write.requires_aproval is no field of an "
            "overlay. Did you mean requires_approval?"
        )
        assert said in house.problem("files")
        assert "What could be read of it last holds" in house.problem("files")
        upstream.change(Kind.TOOLS, [tool("write", "Another."), tool("other")])
        await until(lambda: bool(house.states()["mcp:files:write"]))


@pytest.mark.parametrize("said", [None, "tools: {get_a: {effect: pur}}"])
async def test_without_an_overlay_that_can_be_read_nothing_is_offered(
    tmp_path: Path, said: str | None
) -> None:
    if said is not None:
        (tmp_path / "files.yaml").write_text(said)
    async with served({"files": files()}, SETTINGS, root=tmp_path) as house:
        assert house.states() == {}
        assert "files.yaml" in house.problem("files")
        assert "None of its tools are offered" in house.problem("files")
