"""A folder with a manifest is a plugin: read, agreed to, loaded, and wrong alone."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME
from tests.plugins.folders import CODE, agree, manifest, opened, row, settle, told, tool, write
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.plugins import offer
from toolgate.plugins.needs import missing
from toolgate.plugins.package import taken
from toolgate.settings.settings import Tools

pytestmark = pytest.mark.req("U1")


async def test_new_code_waits_for_an_operator_and_is_live_once_it_is_agreed_to(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    async with opened(tmp_path) as gate:
        assert row(gate)["state"] == "waiting"
        assert gate.catalog.current.get("told") is None
        with pytest.raises(ToolNotFound):
            await gate.call("told", {}, caller=ME)
        shown = await gate.plugins.shown("teller")
        assert shown["waiting"]["is_new"]
        assert [line.split(" (")[0] for line in shown["waiting"]["lines"]] == [
            "new: manifest.json",
            "new: tools.py",
        ]
        assert (await agree(gate))["state"] == "live"
        assert await told(gate, text="x") == {"text": "x", "version": 1}
        [record] = [one for one in await gate.tenancy.audit() if one.change == "pin_tools"]
        assert record.who == "ann"
        assert record.details["tools"]["last"] == row(gate)["fingerprint"]
    # What was agreed to is so after a restart, and on every other node.
    async with opened(tmp_path) as again:
        assert await told(again) == {"text": "", "version": 1}
    write(tmp_path, version=2)
    async with opened(tmp_path) as changed:
        assert "waits for an operator" in changed.catalog.current.unusable["told"]


async def test_changed_code_waits_while_the_old_one_stays_live(tmp_path: Path) -> None:
    write(tmp_path)
    async with opened(tmp_path) as gate:
        await agree(gate)
        write(tmp_path, version=2)
        assert await gate.plugins.check_for_changes() == ["teller"]
        assert (await gate.plugins.reload_changed()).waiting == ("teller",)
        assert await gate.plugins.check_for_changes() == []
        assert await told(gate) == {"text": "", "version": 1}
        waiting = (await gate.plugins.shown("teller"))["waiting"]
        assert {"  -VERSION = 1", "  +VERSION = 2"} <= set(waiting["lines"])
        await agree(gate)
        assert await told(gate) == {"text": "", "version": 2}
        # One that was agreed to before needs nobody's word again.
        write(tmp_path, version=1)
        assert (await gate.plugins.reload_changed()).loaded == ("teller",)
        assert await told(gate) == {"text": "", "version": 1}


async def test_what_has_changed_since_it_was_looked_at_is_not_agreed_to(tmp_path: Path) -> None:
    folder = write(tmp_path)
    async with opened(tmp_path) as gate:
        seen = (await gate.plugins.shown("teller"))["waiting"]["fingerprint"]
        (folder / "more.py").write_text("A = 1\n", "utf-8")
        with pytest.raises(InvalidRequest, match="has changed since it was looked at"):
            await gate.plugins.approve(gate.tenancy, "teller", seen)
        with pytest.raises(InvalidRequest, match=r"no plugin 'tellar'\. Did you mean"):
            await gate.plugins.shown("tellar")
        await agree(gate)
        with pytest.raises(InvalidRequest, match="Nothing of plugin 'teller' waits"):
            await gate.plugins.approve(gate.tenancy, "teller", seen)


async def test_what_is_trusted_waits_for_nobody_and_is_on_record(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "other", tools=[tool("other")])
    async with opened(tmp_path, "teller") as gate:
        assert await told(gate) == {"text": "", "version": 1}
        assert row(gate, "other")["state"] == "waiting"
        assert list(gate.tenancy.world.servers.pins) == ["plugin:teller"]
        assert (await gate.plugins.reload_changed()).count == 0


async def test_a_missing_dependency_switches_off_that_plugin_alone(tmp_path: Path) -> None:
    write(tmp_path, dependencies=["msgspec", "no_such_package", "orjson>=900"])
    write(tmp_path, "other", tools=[tool("other")], dependencies=["orjson>=1", "sqlalchemy.orm"])
    async with opened(tmp_path, "*") as gate:
        assert row(gate)["state"] == "broken"
        assert "it needs no_such_package, orjson>=900" in row(gate)["problem"]
        assert "no_such_package" in gate.catalog.current.unusable["told"]
        assert await told(gate, "other") == {"text": "", "version": 1}


@pytest.mark.parametrize(
    ("dependency", "is_here"),
    [
        ("toolgate-of-the-test", True),
        ("toolgate_of_the_test", True),
        ("toolgate-of-the-test>=1.2,<2", True),
        ("toolgate-of-the-test ~= 1.4", True),
        ("toolgate-of-the-test~=1.4.1", True),
        ("toolgate-of-the-test==1.4.2.0", True),
        ("toolgate-of-the-test!=1.4.2", False),
        ("toolgate-of-the-test~=1.3.0", False),
        ("toolgate-of-the-test>1.4.2", False),
        ("toolgate-of-the-test===1", False),
        ("toolgate-of-the-test @ file:///x", False),
        ("json", True),
        ("json.decoder", True),
        ("sys", True),
        ("json.nothing", False),
        ("no_such_module", False),
        ("no_such_module>=1", False),
    ],
)
def test_a_dependency_is_a_package_or_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dependency: str, *, is_here: bool
) -> None:
    info = tmp_path / "toolgate_of_the_test-1.4.2.dist-info"
    info.mkdir()
    said = "Metadata-Version: 2.1\nName: toolgate-of-the-test\nVersion: 1.4.2\n"
    (info / "METADATA").write_text(said, "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert (missing([dependency]) == []) == is_here


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{", "manifest.json, line 1 is not JSON"),
        (json.dumps(manifest() | {"schema_version": "2.0"}), "schema_version '2.0'"),
        (json.dumps(manifest("other")), "a plugin is called as its folder is"),
        (json.dumps(manifest() | {"dependancies": []}), "unknown field 'dependancies'"),
        (json.dumps(manifest() | {"dependencies": ["; rm"]}), "names no package"),
        (json.dumps(manifest(tools=[tool(function="nothing")])), "no function 'nothing'"),
        (json.dumps(manifest(tools=[tool(module="1x")])), "no module that Python could load"),
        (json.dumps(manifest(tools=[tool(parameters={"y": {"type": "string"}})])), "does not fit"),
        (json.dumps(manifest(tools=[tool(effect="sometimes")])), "told.effect is 'sometimes'"),
        (json.dumps(manifest(tools=[tool(), tool()])), "is defined twice"),
        (json.dumps(manifest(tools=[tool("mcp:x:y")])), "kept for the tools of MCP servers"),
        (json.dumps(manifest(settings_schema={"a": {"type": "text"}})), "settings_schema"),
    ],
)
async def test_a_manifest_that_cannot_hold_says_what_is_wrong(
    tmp_path: Path, given: str, says: str
) -> None:
    folder = write(tmp_path)
    (folder / "manifest.json").write_text(given, "utf-8")
    async with opened(tmp_path, "*") as gate:
        assert row(gate)["state"] == "broken"
        assert says in row(gate)["problem"]
        assert str(tmp_path) not in row(gate)["problem"]


BROKEN = {
    "def told(:\n": "SyntaxError, tools.py line 1",
    "import no_such_module\n": "ModuleNotFoundError: no_such_module, tools.py line 1",
    "A = 1\nraise RuntimeError('secret')\n": "RuntimeError, tools.py line 2",
    "import sys\nsys.exit(3)\n": "SystemExit, tools.py line 2",
    "told = 3\n": "is not a function",
    "def told(text, /): ...\n": "is passed by position",
}


@pytest.mark.parametrize("code", BROKEN)
async def test_code_that_does_not_load_says_where_and_not_what_was_in_it(
    tmp_path: Path, code: str
) -> None:
    write(tmp_path, code=code)
    async with opened(tmp_path, "*") as gate:
        assert BROKEN[code] in row(gate)["problem"]
        assert "secret" not in row(gate)["problem"]
        assert "told" in gate.catalog.current.unusable


async def test_a_plugin_can_be_switched_off_and_one_that_is_gone_is_gone(tmp_path: Path) -> None:
    folder = write(tmp_path, enabled=False)
    async with opened(tmp_path, "*") as gate:
        assert row(gate)["state"] == "off"
        settle(tmp_path, enabled=True)
        await gate.plugins.reload_changed()
        assert await told(gate) == {"text": "", "version": 1}
        for path in folder.iterdir():
            path.unlink()
        assert (await gate.plugins.reload_changed()).gone == ("teller",)
        assert gate.catalog.current.get("told") is None


async def test_modules_of_a_plugin_import_each_other_and_read_their_own_files(
    tmp_path: Path,
) -> None:
    code = (
        "import pkgutil\nfrom .deep.inner import NAME\nfrom . import deep\n\n"
        "async def told(text: str = '') -> dict[str, str]:\n"
        "    from .deep import late\n"
        "    words = (pkgutil.get_data(__package__, 'words.txt') or b'').decode()\n"
        "    return {'name': NAME, 'late': late.NAME, 'words': words}\n"
    )
    folder = write(tmp_path, code=code)
    (folder / "deep").mkdir()
    (folder / "deep" / "inner.py").write_text("NAME = 'inner'\n", "utf-8")
    (folder / "deep" / "late.py").write_text("from .inner import NAME\n", "utf-8")
    (folder / "words.txt").write_text("one two", "utf-8")
    async with opened(tmp_path, "*") as gate:
        # What is written afterwards is not what is loaded.
        (folder / "deep" / "late.py").write_text("NAME = 'changed'\n", "utf-8")
        (folder / "words.txt").write_text("changed", "utf-8")
        said = {"name": "inner", "late": "inner", "words": "one two"}
        assert await told(gate) == said


async def test_a_module_may_be_named_from_outside_as_long_as_it_is_the_folder(
    tmp_path: Path,
) -> None:
    """As plugins of another system name theirs: `src.tools.NAME`."""
    folder = write(tmp_path, tools=[tool(module="src.tools.teller")])
    (folder / "tools.py").rename(folder / "__init__.py")
    async with opened(tmp_path, "*") as gate:
        assert await told(gate) == {"text": "", "version": 1}


async def test_definitions_from_elsewhere_run_nothing_of_a_plugin(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "tools").mkdir()
    given: dict[str, Any] = {"name": "mine", "provider": "plugin", "effect": "pure"}
    async with opened(tmp_path, "*") as gate:
        place = gate.catalog.current.specs["told"].config.value()
    text = json.dumps({"tools": [given | {"config": place}]})
    (tmp_path / "tools" / "mine.json").write_text(text, "utf-8")
    async with opened(tmp_path, "*") as gate:
        assert "only a plugin's manifest" in gate.catalog.current.unusable["mine"]


async def test_of_two_folders_with_one_name_the_first_counts(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path / "more", code=CODE.format(version=2))
    tools = Tools(plugins=("plugins", "more/plugins"))
    async with opened(tmp_path, "*", tools=tools) as gate:
        assert await told(gate) == {"text": "", "version": 1}
        assert "another folder has its name" in row(gate)["problem"]


async def test_whatever_goes_wrong_with_one_the_house_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)

    def fails(*_given: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(offer, "specs_of", fails)
    async with opened(tmp_path, "*") as gate:
        assert row(gate)["problem"] == "it cannot be looked at (KeyError)"


async def test_what_running_it_leaves_behind_is_part_of_a_portable_one_only(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "__pycache__").mkdir()
    before = taken(folder).fingerprint
    (folder / "__pycache__" / "tools.pyc").write_bytes(b"code")
    assert taken(folder).fingerprint == before
    (folder / "plugin.json").write_text("{}", "utf-8")
    before = taken(folder).fingerprint
    (folder / "__pycache__" / "tools.pyc").write_bytes(b"other")
    assert taken(folder).fingerprint != before
