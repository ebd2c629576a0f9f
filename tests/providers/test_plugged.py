"""Providers of other packages: found by entry point or setting, and broken alone."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME
from toolgate import Call, Toolgate, configuration
from toolgate.errors import SettingsInvalid
from toolgate.providers.plugged import PluggedProviders
from toolgate.settings.outward import CustomProvider
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.tools.table import table

pytestmark = pytest.mark.req("P7")
POINTS = """[toolgate.providers]
echoing = plugged_canary:Echoing
broken = plugged_canary:nothing_of_this_name
ending = plugged_canary:ends
odd = plugged_canary:odd
raising = plugged_canary:Raising
python = plugged_canary:Echoing
shell = plugged_canary:Echoing
"""
MODULE = """
loaded = []

class Echoing:
    def __init__(self, settings):
        loaded.append(dict(settings))
        self.settings = settings
        self.closed = False

    def unusable(self, spec):
        return None

    async def run(self, call):
        return {"args": call.args, "settings": dict(self.settings)}

    async def close(self):
        loaded.append("closed")

class Raising(Echoing):
    def unusable(self, spec):
        raise RuntimeError("boom")

def ends(settings):
    raise SystemExit(1)

def odd(settings):
    return object()
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package beside the others, as pip leaves it."""
    site = tmp_path / "site"
    info = site / "plugged_canary-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged-canary\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (site / "plugged_canary.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    monkeypatch.delitem(sys.modules, "plugged_canary", raising=False)
    return site


def write(root: Path, *kinds: str, settings: str = "") -> Path:
    tools = [{"name": f"by_{kind}", "provider": kind, "effect": "pure"} for kind in kinds]
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools" / "own.json").write_text(json.dumps({"tools": tools}))
    file = root / "toolgate.toml"
    file.write_text(settings)
    return file


def loaded() -> list[Any]:
    return getattr(sys.modules.get("plugged_canary"), "loaded", [])


async def test_a_provider_of_another_package_runs_its_tools(
    installed: Path, tmp_path: Path
) -> None:
    async with Toolgate.open(write(tmp_path, "echoing")) as gate:
        output = await gate.call("by_echoing", {}, caller=ME)
        assert output.data == {"args": {}, "settings": {}}
        assert loaded() == [{}]
    assert loaded() == [{}, "closed"]


async def test_nothing_is_loaded_until_a_tool_names_it(installed: Path, tmp_path: Path) -> None:
    async with Toolgate.open(write(tmp_path)) as gate:
        assert len(gate.catalog.current.specs) == len(table())
    assert "plugged_canary" not in sys.modules


async def test_a_broken_one_takes_only_its_own_tools_with_it(
    installed: Path, tmp_path: Path
) -> None:
    kinds = ("echoing", "broken", "ending", "odd", "raising", "nobody")
    async with Toolgate.open(write(tmp_path, *kinds)) as gate:
        told = {kind: gate.catalog.current.unusable.get(f"by_{kind}", "") for kind in kinds}
        assert (await gate.call("by_echoing", {}, caller=ME)).ok
    assert told["echoing"] == ""
    assert "cannot be loaded (AttributeError)" in told["broken"]
    assert "cannot be loaded (SystemExit)" in told["ending"]
    assert "no unusable(spec) and async run(call)" in told["odd"]
    assert "could not look at it (RuntimeError)" in told["raising"]
    assert "no provider 'nobody'" in told["nobody"]


async def test_none_takes_the_place_of_a_built_in_kind(installed: Path, tmp_path: Path) -> None:
    async with Toolgate.open(write(tmp_path, "python", "shell")) as gate:
        assert {"by_python", "by_shell"} <= set(gate.catalog.current.unusable)
        assert (await gate.call("echo", {"text": "x"}, caller=ME)).data == {"text": "x"}
    assert loaded() == []


async def test_the_settings_name_one_and_hand_it_what_it_needs(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE_KEY", "canary-of-mine")
    settings = """
[providers.custom.mine]
use = "plugged_canary:Echoing"
settings = {place = "here"}
settings_env = {key = "MINE_KEY"}
"""
    async with Toolgate.open(write(tmp_path, "mine", settings=settings)) as gate:
        output = await gate.call("by_mine", {}, caller=ME)
        assert loaded() == [{"place": "here", "key": "canary-of-mine"}]
        assert output.ok
    wrong = write(tmp_path, settings='[providers.custom.mine]\nuse = "no colon"\n')
    with pytest.raises(SettingsInvalid, match="MODULE:NAME"):
        configuration.load(wrong)


async def test_a_variable_that_is_not_set_is_told_and_nothing_is_loaded(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = """
[providers.custom.mine]
use = "plugged_canary:Echoing"
settings_env = {key = "MINE_KEY"}
"""
    monkeypatch.delenv("MINE_KEY", raising=False)
    file = write(tmp_path, "mine", settings=settings)
    async with Toolgate.open(file) as gate:
        told = gate.catalog.current.unusable["by_mine"]
    assert told == "provider 'mine' needs a variable that is not set: MINE_KEY (for key)"
    assert loaded() == []
    # One that is set to nothing is set.
    monkeypatch.setenv("MINE_KEY", "")
    async with Toolgate.open(file) as gate:
        assert (await gate.call("by_mine", {}, caller=ME)).ok


async def test_a_kind_that_is_misspelt_is_told_with_the_nearest(tmp_path: Path) -> None:
    async with Toolgate.open(write(tmp_path, "htpp", "nobody")) as gate:
        told = gate.catalog.current.unusable
    assert told["by_htpp"] == "no provider 'htpp' is available; did you mean 'http'?"
    assert told["by_nobody"] == "no provider 'nobody' is available"


def from_(origin: str) -> ToolSpec:
    given = {"name": "x", "provider": "echoing", "effect": "pure"}
    return read_tool(given, origin=Origin(origin, "somewhere"))


def test_definitions_from_afar_reach_only_what_the_settings_name(installed: Path) -> None:
    silent, named = PluggedProviders({}), PluggedProviders({"echoing": CustomProvider()})
    for origin, silently in (("file", True), ("python", True), ("http", False), ("user", False)):
        found = silent.find("echoing")
        assert found is not None
        assert (found.unusable(from_(origin)) is None) is silently
        found = named.find("echoing")
        assert found is not None
        assert found.unusable(from_(origin)) is None


async def test_a_program_hands_one_in(tmp_path: Path) -> None:
    class Own:
        def unusable(self, spec: ToolSpec) -> str | None:
            return None

        async def run(self, call: Call) -> Mapping[str, Any]:
            return {"ran": call.spec.name}

    async with Toolgate.open(write(tmp_path, "own"), providers={"own": Own()}) as gate:
        assert (await gate.call("by_own", {}, caller=ME)).data == {"ran": "by_own"}
