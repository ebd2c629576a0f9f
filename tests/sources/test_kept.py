"""Tool files kept in a store that several nodes share: a clash costs the file that brought it."""

from pathlib import Path

import pytest

from toolgate import Toolgate, toolfiles
from toolgate.catalog.source import Health
from toolgate.errors import NameClash
from toolgate.settings.settings import Settings, Tools
from toolgate.sources.kept import IMPORTS

pytestmark = pytest.mark.req("C2")


def file_of(*names: str) -> str:
    return "tools:\n" + "".join(
        f"  - {{name: {name}, provider: http, effect: pure, "
        'config: {method: GET, url: "https://shop.example/now"}}\n'
        for name in names
    )


def house(root: Path) -> Settings:
    return Settings(root=root, tools=Tools(builtin=("echo",)))


async def keep(gate: Toolgate, name: str, *names: str) -> list[str]:
    by = gate.tenancy.by("someone", "a test")
    return (await toolfiles.keep(gate, by, name, file_of(*names), replace=True))["notes"]


def health(gate: Toolgate) -> Health:
    (found,) = [one for one in gate.catalog.health() if one.source == IMPORTS]
    return found


async def test_a_name_that_another_node_has_imported_since_is_taken_here_too(
    tmp_path: Path,
) -> None:
    async with Toolgate.open(house(tmp_path)) as one, Toolgate.open(house(tmp_path)) as other:
        assert await keep(one, "first", "same") == []
        with pytest.raises(NameClash, match="import first"):
            await keep(other, "second", "same", "more")
        assert list(await other.tenancy.tool_files()) == ["first"]
        assert await keep(other, "second", "more") == []
        assert {"same", "more"} <= set(other.catalog.current.specs)


async def test_of_files_that_clash_all_the_same_only_the_newer_one_is_left_out(
    tmp_path: Path,
) -> None:
    """As two nodes leave them that have checked in the same moment."""
    async with Toolgate.open(house(tmp_path)) as gate:
        for name, names in (("z", ["same"]), ("a", ["same", "lost"]), ("m", ["unrelated"])):
            await gate.tenancy.by("someone", "a test").put_tool_file(name, file_of(*names))
        await gate.catalog.again(IMPORTS)
        assert set(gate.catalog.current.specs) == {"echo", "same", "unrelated"}
    async with Toolgate.open(house(tmp_path)) as gate:
        assert set(gate.catalog.current.specs) == {"echo", "same", "unrelated"}
        assert gate.catalog.current.specs["same"].origin.where == "z"
        found = health(gate)
        assert (found.ok, found.tools, found.stale) == (False, 2, False)
        assert found.problem.startswith("a is left out. Two tools are called 'same'")
        # Once it is put right, nothing is left to tell.
        assert await keep(gate, "a", "other", "lost") == []
        assert health(gate).ok


async def test_a_file_that_clashes_with_a_tool_of_this_machine_costs_no_other(
    tmp_path: Path,
) -> None:
    async with Toolgate.open(house(tmp_path)) as gate:
        assert await keep(gate, "shop", "buy") == []
        assert await keep(gate, "weather", "now") == []
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "own.yaml").write_text(file_of("buy"), "utf-8")
    async with Toolgate.open(house(tmp_path)) as gate:
        assert set(gate.catalog.current.specs) == {"echo", "buy", "now"}
        assert gate.catalog.current.specs["buy"].origin.kind == "file"
        assert health(gate).problem.startswith("shop is left out.")
