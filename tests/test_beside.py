"""Modules beside the settings are tools; what tools write is never a module."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.blank import put_blank
from tests.house import ME, STORE
from toolgate import Toolgate, beside, kinds
from toolgate.premises import Premises
from toolgate.settings.settings import Settings

pytestmark = pytest.mark.req("T4", "P1")
TOOL = """\
tools:
  - name: told
    description: Tells something.
    provider: python
    config: {{module: {module}, function: told}}
    input_schema: {{type: object, properties: {{}}, additionalProperties: false}}
    effect: pure
"""
CODE = "def told() -> str:\n    return 'told'\n"
# What a library tries to import and most machines lack; it leaves a mark where it is found.
MARK = "import pathlib\n\npathlib.Path({mark!r}).touch()\n"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of a test is found by another one."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(beside, "_UNWRITTEN", beside._Unwritten())  # pyright: ignore[reportPrivateUsage]
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("beside_"):
            del sys.modules[name]
    importlib.invalidate_caches()


def house(root: Path, **tools: Any) -> Settings:
    put_blank(root / STORE)
    given: dict[str, Any] = {"root": root, "approvals": {"mode": "never"}, "tools": tools}
    return Settings.model_validate(given)


def reasons(gate: Toolgate) -> dict[str, str]:
    return {name: str(why) for name, why in gate.catalog.current.unusable.items()}


def nothing_of_its_own(_settings: Settings) -> Premises:
    """A guard that is off."""
    return Premises(own=(), secret=(), unseen=())


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_what_a_tool_writes_is_no_part_of_any_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    settings = house(tmp_path)
    if not is_guarded:
        monkeypatch.setattr(kinds, "premises", nothing_of_its_own)
        settings = house(tmp_path, roots=["."])
    mark = tmp_path / "mark"
    args = {"path": "beside_optional.py", "content": MARK.format(mark=str(mark))}
    async with Toolgate.open(settings) as gate:
        written = await gate.call("write_file", args, caller=ME)
        assert written.ok, written
        importlib.invalidate_caches()
        try:
            importlib.import_module("beside_optional")
        except ModuleNotFoundError:
            assert is_guarded
        assert mark.exists() is not is_guarded


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_root_is_no_package_of_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(beside, "_UNWRITTEN", _Asleep())
    for folder in ("tools", "beside_shop", "beside_shop/data"):
        (tmp_path / folder).mkdir()
    for file in ("beside_shop/__init__.py", "beside_shop/data/orders.py", "beside_shop/fine.py"):
        (tmp_path / file).write_text(CODE)
    named = {"told": "beside_shop.data.orders", "fine": "beside_shop.fine"}
    for name, module in named.items():
        text = TOOL.format(module=module).replace("name: told", f"name: {name}")
        (tmp_path / "tools" / f"{name}.yaml").write_text(text)
    async with Toolgate.open(house(tmp_path, roots=["beside_shop/data"])) as gate:
        fine = await gate.call("fine", {}, caller=ME)
        assert fine.data == "told"
        assert ("told" in reasons(gate)) is is_guarded
        if is_guarded:
            assert "WrittenByToolsError" in reasons(gate)["told"]


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_plugin_is_no_package_beside_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(beside, "_UNWRITTEN", _Asleep())
    folder = tmp_path / "beside_plugins" / "weather"
    folder.mkdir(parents=True)
    (folder / "later.py").write_text("A = 1\n")
    async with Toolgate.open(house(tmp_path, plugins=["beside_plugins"])):
        # As it lies there, whatever was agreed to.
        try:
            found = importlib.import_module("beside_plugins.weather.later").A
        except ModuleNotFoundError:
            found = None
        assert found == (None if is_guarded else 1)


async def test_a_package_in_several_folders_is_found_in_those_that_no_tool_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "library" / "beside_names"
    library.mkdir(parents=True)
    (library / "fine.py").write_text("A = 1\n")
    home = tmp_path / "house"
    (home / "beside_names").mkdir(parents=True)
    (home / "beside_names" / "planted.py").write_text("A = 2\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "library")])
    async with Toolgate.open(house(home, roots=["beside_names"])):
        assert importlib.import_module("beside_names.fine").A == 1
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("beside_names.planted")


class _Asleep(beside._Unwritten):  # pyright: ignore[reportPrivateUsage]
    """A guard that is off."""

    def find_spec(self, *_given: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None
