"""A definition in a file, and the function that it names: which of them may say what."""

from pathlib import Path

import pytest

from tests.house import ME, open_gate
from toolgate import Toolgate
from toolgate.errors import ToolNotFound

FUNCTIONS = """
from toolgate import tool

ran = []

@tool(effect="irreversible", destructive=True)
def nuke():
    ran.append("nuke")

@tool(effect="idempotent", requires_confirmation=True)
def sync():
    ran.append("sync")

@tool(requires_approval=True)
def approve():
    ran.append("approve")

@tool
def marked():
    return "marked"

def plain():
    return "plain"

def add(a: int, b: int = 1):
    return a + b

def more(a: int, **others):
    return a

class Shop:
    def buy(self):
        pass

def numbers():
    yield 1
"""


def written(root: Path, module: str, *entries: str) -> None:
    """Each test has a module of its own: what was imported once stays."""
    (root / f"{module}.py").write_text(FUNCTIONS, "utf-8")
    (root / "tools").mkdir(exist_ok=True)
    text = "tools:\n" + "".join(f"  - {entry}\n" for entry in entries)
    (root / "tools" / "a.yaml").write_text(text, "utf-8")


def entry(module: str, function: str, more: str) -> str:
    return f"{{name: it, config: {{module: {module}, function: {function}}}, {more}}}"


async def reason(gate: Toolgate) -> str:
    return (await gate.explain("it", caller=ME)).deciding.reason


@pytest.mark.req("S6", "C1")
@pytest.mark.parametrize(
    ("function", "fields", "says"),
    [
        ("nuke", "effect: pure", "the function says effect: irreversible, its definition effect"),
        ("nuke", "effect: pure", "effect: pure; write effect: irreversible in tools/a.yaml"),
        ("nuke", "effect: irreversible",
         "the function says destructive: true; write destructive: true in tools/a.yaml"),
        ("sync", "effect: pure, requires_confirmation: true", "write effect: idempotent in"),
        ("sync", "effect: idempotent", "write requires_confirmation: true in tools/a.yaml"),
        ("approve", "effect: pure", "write requires_approval: true in tools/a.yaml"),
    ],
)  # fmt: skip
async def test_a_definition_cannot_take_away_the_care_that_the_function_asks_for(
    tmp_path: Path, function: str, fields: str, says: str
) -> None:
    written(tmp_path, "careless", entry("careless", function, fields))
    async with open_gate(tmp_path) as gate:
        assert says in await reason(gate)
        with pytest.raises(ToolNotFound):
            await gate.call("it", caller=ME)


@pytest.mark.req("S6", "C1")
async def test_a_definition_that_becomes_weaker_is_told_at_the_next_reload(tmp_path: Path) -> None:
    careful = entry("weakened", "nuke", "effect: irreversible, destructive: true")
    written(tmp_path, "weakened", careful)
    async with open_gate(tmp_path) as gate:
        assert (await gate.call("it", caller=ME)).status == "pending_approval"
        written(tmp_path, "weakened", entry("weakened", "nuke", "effect: pure"))
        await gate.catalog.reload()
        with pytest.raises(ToolNotFound):
            await gate.call("it", caller=ME)
        assert "the function says effect: irreversible" in await reason(gate)
        written(tmp_path, "weakened", careful)
        await gate.catalog.reload()
        assert (await gate.call("it", caller=ME)).status == "pending_approval"


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    ("function", "fields", "data"),
    [
        ("plain", "effect: pure", "plain"),
        ("marked", "effect: pure", "marked"),
        ("plain", "effect: irreversible", "plain"),
    ],
)
async def test_where_the_function_says_nothing_its_definition_speaks(
    tmp_path: Path, function: str, fields: str, data: str
) -> None:
    written(tmp_path, "silent", entry("silent", function, fields))
    async with open_gate(tmp_path) as gate:
        assert (await gate.call("it", caller=ME)).data == data


@pytest.mark.req("C1")
async def test_a_definition_may_ask_for_more_care_than_its_function(tmp_path: Path) -> None:
    written(tmp_path, "careful", entry("careful", "marked", "requires_approval: true"))
    async with open_gate(tmp_path) as gate:
        assert (await gate.call("it", caller=ME)).status == "pending_approval"


@pytest.mark.req("P1")
@pytest.mark.parametrize(
    ("function", "schema", "says"),
    [
        ("add", "{type: object, properties: {b: {}}}",
         "the function requires 'a', which input_schema lacks"),
        ("add", "{type: object, additionalProperties: false}", "the function requires 'a'"),
        ("add", "{type: object, properties: {a: {}, c: {}, d: {}}}",
         "input_schema names 'c', 'd', which the function does not take"),
        ("more", "{type: object, properties: {b: {}}}", "the function requires 'a'"),
    ],
)  # fmt: skip
async def test_a_schema_that_cannot_fit_its_function_makes_the_tool_unusable(
    tmp_path: Path, function: str, schema: str, says: str
) -> None:
    written(tmp_path, "unfit", entry("unfit", function, f"effect: pure, input_schema: {schema}"))
    async with open_gate(tmp_path) as gate:
        assert says in await reason(gate)
        with pytest.raises(ToolNotFound):
            await gate.call("it", {"b": 1}, caller=ME)


@pytest.mark.req("P1")
@pytest.mark.parametrize(
    ("function", "schema"),
    [
        ("add", "{type: object, properties: {a: {type: integer}}}"),
        ("add", "{type: object, properties: {a: {}, b: {}}, required: [a]}"),
        ("add", "{type: object}"),
        ("add", "{type: object, anyOf: [{properties: {a: {}}}, {required: [a]}]}"),
        ("more", "{type: object, properties: {a: {}, c: {}}}"),
    ],
)
async def test_a_schema_that_can_fit_its_function_is_taken(
    tmp_path: Path, function: str, schema: str
) -> None:
    written(tmp_path, "fit", entry("fit", function, f"effect: pure, input_schema: {schema}"))
    async with open_gate(tmp_path) as gate:
        assert (await gate.call("it", {"a": 1}, caller=ME)).ok


@pytest.mark.req("P1")
@pytest.mark.parametrize(
    ("module", "source", "says"),
    [
        ("exits", "import sys\nsys.exit(3)", "ends the program when it is imported (SystemExit)"),
        ("odd", "None.nothing", "module 'odd' cannot be imported (AttributeError)"),
        (
            "lazy",
            "def __getattr__(name):\n    raise ImportError(name)",
            "module 'lazy' cannot be imported (ImportError)",
        ),
    ],
)
async def test_a_module_that_cannot_be_imported_makes_one_tool_unusable_and_no_other(
    tmp_path: Path, module: str, source: str, says: str
) -> None:
    written(tmp_path, module, entry(module, "act", "effect: pure"))
    (tmp_path / f"{module}.py").write_text(source, "utf-8")
    async with open_gate(tmp_path) as gate:
        assert says in await reason(gate)
        assert (await gate.call("echo", {"text": "still here"}, caller=ME)).ok


@pytest.mark.req("P1")
@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("numbers", "is a generator, which no call would run. Return a list"),
        ("Shop", "is a class"),
        ("Shop.buy", "is a method without its object"),
        ("ran", "shapes.ran is not a function"),
    ],
)
async def test_what_is_no_function_makes_the_tool_unusable(
    tmp_path: Path, function: str, says: str
) -> None:
    written(tmp_path, "shapes", entry("shapes", function, "effect: pure"))
    async with open_gate(tmp_path) as gate:
        assert says in await reason(gate)


@pytest.mark.req("C2", "P1")
async def test_a_definition_that_names_no_function_is_loaded_and_says_what_to_write(
    tmp_path: Path,
) -> None:
    written(
        tmp_path,
        "nobody",
        "{name: it, description: Sandboxed shell command execution, category: code, "
        "side_effects: [local_exec, modifies_files, system_state], destructive: true}",
        "{name: file_reader, tool_type: queue, implementation_config: {command: ls}}",
    )
    async with open_gate(tmp_path) as gate:
        assert await reason(gate) == (
            "config names no module and function; write config: {module: MODULE, function: NAME}"
        )
        found = (await gate.explain("file_reader", caller=ME)).deciding.reason
        assert found.startswith("no broker is configured; set queue.url")
