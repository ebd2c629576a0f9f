"""The table of built-in tools: what it says of each is what its function takes and gives."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house import open_gate
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin
from toolgate.tools.table import Row, table

HERE = [row for row in table().values() if row.lack() is None]
NAMES = [row.name for row in HERE]
IDS = "input_schema: {type: object, properties: {ids: {type: string}}, required: [ids]}"
# As the agent system's own catalog names them: names, arguments and what is required.
AGENT_SYSTEM: dict[str, tuple[set[str], set[str]]] = {
    "memory_load": ({"query", "threshold", "limit", "filter"}, {"query"}),
    "memory_save": ({"text"}, {"text"}),
    "memory_delete": ({"ids"}, {"ids"}),
    "memory_forget": ({"query", "threshold", "filter"}, {"query"}),
    "echo": ({"text"}, {"text"}),
    "timestamp": ({"format"}, set()),
    "code_execute": ({"language", "code"}, {"code"}),
    "file_read": ({"path"}, {"path"}),
    "http_fetch": ({"url", "timeout"}, {"url"}),
    "canvas_append": ({"session_id", "pane", "content"}, {"session_id", "content"}),
    "document_ingest": ({"attachment_id"}, {"attachment_id"}),
    "response": ({"text"}, {"text"}),
    "notify_user": ({"message"}, {"message"}),
    "search_engine": ({"query"}, {"query"}),
    "document_query": ({"query"}, {"query"}),
    "call_subordinate": ({"agent", "message"}, {"agent", "message"}),
    "a2a_chat": ({"agent_url", "message"}, {"agent_url", "message"}),
    "scheduler": ({"task", "schedule"}, {"task", "schedule"}),
    "behaviour_adjustment": ({"adjustment"}, {"adjustment"}),
}


@pytest.mark.req("T3")
@pytest.mark.parametrize("name", sorted(AGENT_SYSTEM))
def test_the_agent_systems_tools_keep_their_schemas(name: str) -> None:
    schema = table()[name].definition["input_schema"]
    names, required = AGENT_SYSTEM[name]
    assert set(schema["properties"]) == names
    assert set(schema.get("required", ())) == required


@pytest.mark.parametrize("row", HERE, ids=NAMES)
def test_a_function_takes_what_its_schema_says(row: Row) -> None:
    schema: dict[str, Any] = row.definition["input_schema"]
    parameters = list(inspect.signature(row.function()).parameters.values())[2:]
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters)
    assert {one.name for one in parameters} == set(schema["properties"])
    required = {one.name for one in parameters if one.default is inspect.Parameter.empty}
    assert required == set(schema.get("required", ()))
    for one in parameters:
        if "default" in schema["properties"][one.name]:
            assert one.default == schema["properties"][one.name]["default"], one.name


@pytest.mark.parametrize("row", HERE, ids=NAMES)
def test_a_tool_says_all_that_a_caller_wants_to_know(row: Row) -> None:
    spec = read_tool(row.definition, origin=Origin(row.source, ""), file=row.name)
    assert spec.description
    assert spec.output_schema is not None
    assert "effect" in row.definition
    assert spec.side_effects
    assert row.examples
    for example in row.examples:
        assert not spec.input_schema.problems(example.args)


def test_a_house_opens_without_the_libraries_of_its_tools() -> None:
    heavy = "numpy, scipy, sympy, numba, jmespath, lxml, selectolax, pypdf, docx, onnxruntime"
    code = (
        "import sys, toolgate.bootstrap\n"
        "from toolgate.tools.table import table\n"
        "rows = [row.lack() for row in table().values()]\n"
        f"print([name for name in {heavy.split(', ')!r} if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{name: mine, config: {builtin: no_such}, effect: pure}", "not part of this version"),
        ("{name: mine, config: {builtin: timestamp}, effect: pure}", None),
        ("{name: mine, config: {builtin: echo}, effect: pure}", "requires 'text'"),
        (
            f"{{name: mine, config: {{builtin: memory_delete}}, effect: pure, {IDS}}}",
            "the function says effect: irreversible",
        ),
    ],
)
async def test_a_definition_of_ones_own_names_a_built_in_tool_with_no_less_care(
    tmp_path: Path, text: str, says: str | None
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "mine.yaml").write_text(f"tools: [{text}]", "utf-8")
    async with open_gate(tmp_path) as gate:
        reason = gate.catalog.current.unusable.get("mine")
        assert says in reason if says and reason else reason is says
