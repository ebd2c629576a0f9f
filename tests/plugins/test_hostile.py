"""Plugins that would do more than they are agreed to: refused, with what they would do if not."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME
from tests.plugins.folders import CODE, agree, opened, row, told, tool, write
from toolgate import Toolgate
from toolgate.catalog import catalog
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.plugins import modules, package
from toolgate.plugins.keeper import Keeper
from toolgate.plugins.plugin import Plugin

pytestmark = pytest.mark.req("U1")
# What leaves a mark where it is loaded.
MARK = "from pathlib import Path\n\nPath({mark!r}).write_text('ran')\n"


def marking(root: Path) -> tuple[str, Path]:
    mark = root / "mark"
    return MARK.format(mark=str(mark)) + CODE.format(version=1), mark


# What stands for a guard that is off.
def anywhere(_package: object, module: str) -> str:
    return module


def from_anywhere(_package: object, module: str) -> object:
    return __import__(module)


def nothing(*_given: object) -> dict[str, str]:
    return {}


def within(_root: object, _path: object, _left_out: object) -> str:
    return "outside.py"


def yes(_plugin: object) -> bool:
    return True


async def refused(gate: Toolgate, says: str, name: str = "teller") -> None:
    """It is not live, says why, and tells nobody where it lies."""
    found = row(gate, name)
    assert found["state"] == "broken", found
    assert says in found["problem"]
    assert found["tools"] == 0
    with pytest.raises(ToolNotFound):
        await gate.call("told", {}, caller=ME)


async def test_code_that_nobody_agreed_to_is_not_even_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, mark = marking(tmp_path)
    folder = write(tmp_path)
    async with opened(tmp_path) as gate:
        await agree(gate)
        (folder / "tools.py").write_text(code, "utf-8")
        await gate.plugins.reload_changed()
        assert row(gate)["state"] == "waiting"
        assert await told(gate) == {"text": "", "version": 1}
    # The positive control: after a restart what was agreed to is gone, and nothing takes its place.
    async with opened(tmp_path) as gate:
        assert row(gate)["state"] == "waiting"
        assert not mark.exists()
    monkeypatch.setattr(Plugin, "_is_trusted", yes)
    async with opened(tmp_path) as gate:
        assert await told(gate) == {"text": "", "version": 1}
        assert mark.read_text() == "ran"


async def test_a_wrong_fingerprint_agrees_to_nothing(tmp_path: Path) -> None:
    code, mark = marking(tmp_path)
    write(tmp_path, code=code)
    async with opened(tmp_path) as gate:
        right = (await gate.plugins.shown("teller"))["waiting"]["fingerprint"]
        for wrong in ("", "0" * 64, right.upper(), right[:-1], f"{right} "):
            with pytest.raises(InvalidRequest, match="has changed since it was looked at"):
                await gate.plugins.approve(gate.tenancy, "teller", wrong)
        assert not mark.exists()
        await gate.plugins.approve(gate.tenancy, "teller", right)
        assert mark.exists()


def pth(folder: Path, _root: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "start.PTH").write_text("import os\n", "utf-8")


def link(folder: Path, root: Path) -> None:
    (root / "outside.py").write_text("SECRET = 1\n", "utf-8")
    (folder / "inner.py").symlink_to(root / "outside.py")


def link_to_folder(folder: Path, root: Path) -> None:
    (root / "outside").mkdir()
    (folder / "inner").symlink_to("../../outside")


def pipe(folder: Path, _root: Path) -> None:
    os.mkfifo(folder / "pipe")


def itself(folder: Path, root: Path) -> None:
    folder.rename(root / "elsewhere")
    folder.symlink_to(root / "elsewhere")


def many(folder: Path, _root: Path) -> None:
    (folder / "large.bin").write_bytes(b"x" * 11)


FILES: list[tuple[Callable[[Path, Path], None], str]] = [
    (pth, "deep/start.PTH would change where Python looks for code"),
    (link, "inner.py is a link that leads outside"),
    (link_to_folder, "inner is a link that leads outside"),
    (pipe, "pipe is no file and no folder"),
    (itself, "its folder is a link"),
]


@pytest.mark.parametrize(("put", "says"), FILES, ids=[one[0].__name__ for one in FILES])
async def test_files_that_reach_out_of_the_folder_are_refused(
    tmp_path: Path, put: Callable[[Path, Path], None], says: str
) -> None:
    folder = write(tmp_path)
    async with opened(tmp_path, "*") as gate:
        # The positive control: without it, the same plugin is live.
        assert await told(gate) == {"text": "", "version": 1}
    put(folder, tmp_path)
    async with opened(tmp_path, "*") as gate:
        await refused(gate, says)


async def test_without_the_guard_a_pth_file_and_a_link_would_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path)
    pth(folder, tmp_path)
    link(folder, tmp_path)
    monkeypatch.setattr(package, "_refuse", nothing)
    monkeypatch.setattr(package, "_within", within)
    async with opened(tmp_path, "*") as gate:
        assert await told(gate) == {"text": "", "version": 1}


async def test_a_link_that_stays_inside_is_no_code_of_its_own(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "same.py").symlink_to("tools.py")
    async with opened(tmp_path, "*") as gate:
        before = row(gate)["fingerprint"]
        assert await told(gate) == {"text": "", "version": 1}
        (folder / "other.py").write_text("A = 1\n", "utf-8")
        (folder / "same.py").unlink()
        (folder / "same.py").symlink_to("other.py")
        await gate.plugins.reload_changed()
        assert row(gate)["fingerprint"] != before
    write(tmp_path, tools=[tool(module="same")])
    async with opened(tmp_path, "*") as gate:
        await refused(gate, "'same', which is not in the plugin's folder")


async def test_a_plugin_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path)
    monkeypatch.setattr(package, "MOST_FILES", 2)
    async with opened(tmp_path, "*") as gate:
        assert await told(gate) == {"text": "", "version": 1}
    many(folder, tmp_path)
    async with opened(tmp_path, "*") as gate:
        await refused(gate, "more than 2 files")
    monkeypatch.setattr(package, "MOST_FILES", 5_000)
    monkeypatch.setattr(package, "MOST_BYTES", 10)
    async with opened(tmp_path, "*") as gate:
        await refused(gate, "keep large data elsewhere")


PLACES = ("os", "os.path", "outside", "json.tool", "toolgate.bootstrap", "plugins.other.tools")


@pytest.mark.parametrize("module", PLACES)
async def test_a_module_outside_of_the_folder_is_no_tool(tmp_path: Path, module: str) -> None:
    (tmp_path / "outside.py").write_text(CODE.format(version=9), "utf-8")
    write(tmp_path, "other", tools=[tool("other")])
    write(tmp_path, tools=[tool(module=module)])
    async with opened(tmp_path, "*") as gate:
        await refused(gate, f"names the module {module!r}, which is not in the plugin's folder")


async def test_without_the_guard_a_module_outside_would_be_found_in_the_plugins_own_name_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even then: what is imported stands below the plugin's package."""
    (tmp_path / "beyond_all.py").write_text(CODE.format(version=9), "utf-8")
    write(tmp_path, tools=[tool(module="beyond_all")])
    monkeypatch.setattr(modules, "relative", anywhere)
    async with opened(tmp_path, "*") as gate:
        await refused(gate, "ModuleNotFoundError: toolgate_plugins.teller_")
    monkeypatch.setattr(modules, "imported", from_anywhere)
    async with opened(tmp_path, "*") as gate:
        assert await told(gate) == {"text": "", "version": 9}


TOOLS = "tools: [{name: filed, config: {builtin: timestamp}, effect: pure}]\n"


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("calculate", "a built-in tool"),
        ("echo", "a built-in tool"),
        ("filed", "a tool of file tools/filed.yaml"),
        ("first", "one of a-plugin"),
    ],
)
async def test_a_name_that_is_taken_is_refused(tmp_path: Path, name: str, whose: str) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "filed.yaml").write_text(TOOLS, "utf-8")
    write(tmp_path, "a-plugin", tools=[tool("first")])
    write(tmp_path, tools=[tool(), tool(name)])
    async with opened(tmp_path, "*") as gate:
        await refused(gate, f"its tool {name!r} is called as {whose} is")
        assert await told(gate, "first") == {"text": "", "version": 1}
        if name != "calculate":
            spec: Any = gate.catalog.current.specs[name]
            assert spec.origin.where != "teller"
    write(tmp_path, tools=[tool(), tool(f"{name}_of_mine")])
    async with opened(tmp_path, "*") as gate:
        assert await told(gate, f"{name}_of_mine") == {"text": "", "version": 1}


async def test_a_plugin_that_nobody_agreed_to_takes_no_name_away(tmp_path: Path) -> None:
    write(tmp_path)
    async with opened(tmp_path) as gate:
        await agree(gate)
    write(tmp_path, "a-thief", tools=[tool("told"), tool("mine")])
    write(tmp_path, "b-thief", tools=[tool("echo")])
    async with opened(tmp_path) as gate:
        assert await told(gate) == {"text": "", "version": 1}
        assert (await gate.call("echo", {"text": "x"}, caller=ME)).data == {"text": "x"}
        assert gate.catalog.current.get("mine") is None
        # It is found out at the latest when somebody would agree to it.
        for thief in ("a-thief", "b-thief"):
            if row(gate, thief)["state"] == "waiting":
                await agree(gate, thief)
            assert row(gate, thief)["state"] == "broken"
        assert await told(gate) == {"text": "", "version": 1}


async def test_without_the_guard_the_catalog_still_keeps_a_taken_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two walls: behind the plugin's own stands the catalog's, and only without both it falls."""
    write(tmp_path, tools=[tool("echo")])
    monkeypatch.setattr(Keeper, "_taken", nothing)
    async with opened(tmp_path, "*") as gate:
        assert (await gate.call("echo", {"text": "x"}, caller=ME)).data == {"text": "x"}
        [health] = [one for one in gate.catalog.health() if one.source == "plugin teller"]
        assert "Two tools are called 'echo'" in health.problem

    def merged(parts: dict[str, Any]) -> dict[str, Any]:
        return {spec.name: spec for specs in parts.values() for spec in specs}

    monkeypatch.setattr(catalog, "_merged", merged)
    async with opened(tmp_path, "*") as gate:
        assert await told(gate, "echo", text="x") == {"text": "x", "version": 1}
