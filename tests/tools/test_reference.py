"""The reference of built-in tools: `python -m tests.tools.test_reference` writes it anew.

Each page shows calls that were made, and what came of them. What differs from run to run, such as
times and ids, may differ: the fields of an answer may not.
"""

import asyncio
import re
import shlex
from collections.abc import AsyncGenerator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import orjson
import pytest
import pytest_asyncio

from tests.tools.surroundings import Surroundings, surroundings
from toolgate import Caller
from toolgate.spec.tool import ToolSpec
from toolgate.tools.table import Row, Step, table

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "tools"
ME = Caller(tenant="acme", agent="clerk")
_HEAD = (
    "Written by `python -m tests.tools.test_reference`; the calls were made, the answers came. "
    "Files and agents that\na call names were there, and a person had agreed where one is "
    "[asked](../../how-to/ask-a-person.md)."
)
_LONG = 2_400
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("T1", "T2", "T3")]


def categories() -> dict[str, list[Row]]:
    """Tools by category, in the table's order."""
    rows = sorted(table().values(), key=lambda row: (row.category, row.name))
    return {name: list(some) for name, some in groupby(rows, lambda row: row.category)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Surroundings]:
    """What the pages were written in."""
    async with surroundings(tmp_path_factory.mktemp("reference")) as found:
        yield found


@pytest.mark.parametrize("category", categories())
async def test_a_page_shows_what_a_call_gives(house: Surroundings, category: str) -> None:
    text = (PAGES / f"{category}.md").read_text("utf-8")
    written = await page(house, category)
    assert without_answers(text) == without_answers(written), "python -m tests.tools.test_reference"
    assert fields(text) == fields(written)


async def test_a_shell_reads_a_call_as_it_was_made() -> None:
    text = "".join(path.read_text("utf-8") for path in PAGES.glob("*.md"))
    calls = [shlex.split(line) for line in re.findall(r"(?m)^toolgate call .*$", text)]
    shown = {(words[2], words[4]) for words in calls}
    made = {
        (row.name, orjson.dumps(example.args).decode())
        for row in table().values()
        for example in row.examples[:2]
    }
    assert made <= shown
    assert any("'" in args for _, args in made), "a quote is what a shell would take away"


async def test_there_is_a_page_for_every_category_and_no_other() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(categories())


def without_answers(text: str) -> str:
    """All that is the same each time."""
    return re.sub(r"(?s)(Answer:\n\n```text\n).*?(\n```)", r"\1\2", text)


def fields(text: str) -> list[list[str]]:
    """The names in each answer, as far as it is shown."""
    answers = re.findall(r"(?s)Answer:\n\n```text\n(.*?)\n```", text)
    return [sorted(set(re.findall(r'(?m)^  "(\w+)":', one))) for one in answers]


async def page(house: Surroundings, category: str) -> str:
    """One category."""
    parts = [await _tool(house, row) for row in categories()[category]]
    return "\n".join([f"# Built-in tools: {category}\n\n{_HEAD}\n", *parts])


async def _tool(house: Surroundings, row: Row) -> str:
    spec = house.gate.catalog.current.specs[row.name]
    lines = [f"## `{row.name}`", "", spec.description, "", _manner(spec, row), ""]
    lines += [*_arguments(spec), ""]
    for example in row.examples[:2]:
        lines += [f"{example.title}:" if example.title else "Call:", "", "```text"]
        args = dict(example.args)
        for step in example.before:
            output = await house.gate.call(step.tool, house.ground.args(step.args), caller=ME)
            assert output.ok, output
            args |= step.given(output.data)
            if step.gives:
                lines += [f"# {', '.join(step.gives)}: as this call gives it", _line(step)]
        lines += [_line(Step(row.name, example.args))]
        lines += ["```", "", *await _answer(house, row, args), ""]
    return "\n".join(lines)


def _line(step: Step) -> str:
    args = orjson.dumps(step.args).decode().replace("'", "'\\''")
    return f"toolgate call {step.tool} --args '{args}'"


async def _answer(house: Surroundings, row: Row, args: dict[str, Any]) -> list[str]:
    output = await house.gate.call(row.name, house.ground.args(args), caller=ME)
    assert output.ok, f"an example of {row.name} fails: {output.error}"
    text = house.ground.shown(orjson.dumps(output.data, option=orjson.OPT_INDENT_2).decode())
    if len(text) > _LONG:
        text = text[:_LONG].rsplit("\n", 1)[0] + "\n  …"
    return ["Answer:", "", "```text", text, "```"]


def _manner(spec: ToolSpec, row: Row) -> str:
    told = [f"Effect: {spec.effect}"]
    if spec.side_effects:
        told.append("does: " + ", ".join(spec.side_effects))
    if spec.permissions:
        told.append("needs permission: " + ", ".join(spec.permissions))
    care = ("destructive", "requires_confirmation", "requires_approval")
    told += [field.replace("_", " ") for field in care if getattr(spec, field)]
    if spec.compensation is not None:
        told.append(f"taken back by `{spec.compensation.tool}`")
    if row.extra:
        told.append(f"extra: `{row.extra}`")
    return "; ".join(told) + "."


def _arguments(spec: ToolSpec) -> list[str]:
    schema = cast("dict[str, Any]", spec.input_schema.value())
    required = set(schema.get("required", ()))
    lines = ["| argument | type | what it is |", "|---|---|---|"]
    for name, one in cast("dict[str, dict[str, Any]]", schema.get("properties", {})).items():
        kind: Any = one.get("type", "anything")
        shown = kind if isinstance(kind, str) else " or ".join(cast("list[str]", kind))
        if "enum" in one:
            shown += ": " + ", ".join(f"`{value}`" for value in one["enum"])
        told = str(one.get("description", "")).replace("|", "\\|")
        if name in required:
            told = f"{told} (required)".strip()
        elif "default" in one:
            told = f"{told} (default: `{orjson.dumps(one['default']).decode()}`)".strip()
        lines.append(f"| `{name}` | {shown} | {told} |")
    return lines if len(lines) > 2 else ["It takes no arguments."]


async def write() -> None:
    """All pages, anew."""
    PAGES.mkdir(parents=True, exist_ok=True)
    for old in PAGES.glob("*.md"):
        old.unlink()
    with TemporaryDirectory(prefix="toolgate-reference-") as folder:
        async with surroundings(Path(folder)) as house:
            for category in categories():
                text = await page(house, category)
                (PAGES / f"{category}.md").write_text(text, "utf-8")


if __name__ == "__main__":
    asyncio.run(write())
