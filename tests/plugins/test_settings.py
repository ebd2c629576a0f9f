"""What operators set of plugins and of their tools: checked, and before the defaults."""

from pathlib import Path
from typing import Any

import pytest

from tests.house import ME
from tests.plugins.folders import agree, opened, row, settle, told, tool, write
from toolgate.errors import ToolNotFound

pytestmark = pytest.mark.req("U3")
CODE = """\
from collections.abc import Mapping
from typing import Any


def told(settings: Mapping[str, Any], text: str = "") -> dict[str, Any]:
    return dict(settings)
"""
SCHEMA = {
    "folder": {"type": "string", "default": "here"},
    "most": {"type": "integer", "minimum": 1, "default": 3},
    "key": {"type": "string", "required": True},
}


TOOLS = [tool(), tool("other")]


def put(root: Path, **more: Any) -> None:
    write(root, code=CODE, settings_schema=SCHEMA, tools=TOOLS, **more)


async def test_settings_stand_before_defaults_and_those_of_a_tool_before_both(
    tmp_path: Path,
) -> None:
    put(tmp_path)
    settle(
        tmp_path,
        custom_config={"key": "k", "most": 4},
        tool_overrides={"other": {"custom_config": {"most": 5}}},
    )
    async with opened(tmp_path, "*") as gate:
        assert await told(gate) == {"folder": "here", "most": 4, "key": "k"}
        assert await told(gate, "other") == {"folder": "here", "most": 5, "key": "k"}
        shown = await gate.plugins.shown("teller")
        assert shown["settings"] == {"folder": "default", "most": "set", "key": "set"}
        # A model is told nothing of them, and can give none.
        spec = gate.catalog.current.specs["told"]
        assert set(spec.input_schema.value()["properties"]) == {"text"}


async def test_a_change_of_settings_is_a_reload_and_the_same_code(tmp_path: Path) -> None:
    put(tmp_path)
    settle(tmp_path, custom_config={"key": "k"})
    async with opened(tmp_path, "*") as gate:
        before = row(gate)["fingerprint"], gate.catalog.current.specs["told"].fingerprint
        settle(tmp_path, custom_config={"key": "l"})
        assert await gate.plugins.check_for_changes() == ["teller"]
        assert (await gate.plugins.reload_changed()).loaded == ("teller",)
        assert (await told(gate))["key"] == "l"
        assert row(gate)["fingerprint"] == before[0]
        assert gate.catalog.current.specs["told"].fingerprint != before[1]


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (
            {"custom_config": {"key": "k", "most": 0}},
            'most: a number does not fit {"type":"integer"',
        ),
        (
            {"custom_config": {"key": "SECRET", "most": "SECRET"}},
            'most: a text does not fit {"type":"integer","minimum":1}',
        ),
        ({"custom_config": {}}, "key is required and not set"),
        ({"custom_config": {"key": "k", "SECRET": 1}}, "not known to it (known: folder, most, key"),
        ({"custom_config": {"key": "k", "floder": 1}}, "Did you mean 'folder'?"),
        ({"custom_config": {"key": "k"}, "overrides": {}}, "unknown field `overrides`"),
        ({"custom_config": {"key": "k"}, "tool_overrides": {"no": {}}}, "speak of a tool 'no'"),
        (
            {"custom_config": {"key": "k"}, "tool_overrides": {"told": {"module": "os"}}},
            "unknown field `module`",
        ),
        (
            {
                "custom_config": {"key": "k"},
                "tool_overrides": {"told": {"requires_approval": False}},
            },
            "they can only add it",
        ),
        ({"custom_config": {"key": "k"}, "tool_overrides": {"told": {"timeout": -1}}}, "timeout"),
    ],
)
async def test_settings_that_do_not_fit_leave_the_last_good_ones_live(
    tmp_path: Path, said: dict[str, Any], says: str
) -> None:
    put(tmp_path)
    settle(tmp_path, custom_config={"key": "k"})
    async with opened(tmp_path, "*") as gate:
        settle(tmp_path, **said)
        found = await gate.plugins.reload_changed()
        assert says in found.broken["teller"]
        assert "SECRET" not in found.broken["teller"]
        assert "stays live" in found.broken["teller"]
        assert (await told(gate))["key"] == "k"


async def test_a_tool_can_be_switched_off_and_be_given_more_care(tmp_path: Path) -> None:
    put(tmp_path)
    override = {"requires_approval": True, "timeout": 7, "description": "Mine."}
    settle(
        tmp_path,
        custom_config={"key": "k"},
        tool_overrides={"told": {"enabled": False}, "other": override},
    )
    async with opened(tmp_path, "*") as gate:
        with pytest.raises(ToolNotFound):
            await gate.call("told", {}, caller=ME)
        spec = gate.catalog.current.specs["other"]
        assert (spec.requires_approval, spec.timeout, spec.description) == (True, 7.0, "Mine.")


async def test_an_argument_called_settings_is_the_callers_where_the_manifest_says_so(
    tmp_path: Path,
) -> None:
    parameters = {"settings": {"type": "object"}}
    write(tmp_path, code=CODE, tools=[tool(parameters=parameters)])
    async with opened(tmp_path, "*") as gate:
        assert await told(gate, settings={"a": 1}) == {"a": 1}


async def test_what_is_set_holds_for_the_live_version_while_a_newer_one_waits(
    tmp_path: Path,
) -> None:
    put(tmp_path)
    settle(tmp_path, custom_config={"key": "k"})
    async with opened(tmp_path) as gate:
        await agree(gate)
        live = row(gate)["fingerprint"]
        write(tmp_path, code=CODE + "\n# newer\n", settings_schema=SCHEMA, tools=TOOLS)
        assert (await gate.plugins.reload_changed()).waiting == ("teller",)
        settle(tmp_path, custom_config={"key": "l"})
        assert (await gate.plugins.reload_changed()).loaded == ("teller",)
        assert (await told(gate))["key"] == "l"
        off = {"other": {"enabled": False}}
        settle(tmp_path, custom_config={"key": "l"}, tool_overrides=off)
        await gate.plugins.reload_changed()
        with pytest.raises(ToolNotFound):
            await gate.call("other", {}, caller=ME)
        assert (await told(gate))["key"] == "l"
        # What is lifted is lifted, and what does not fit leaves it as it was, and is told.
        settle(tmp_path, custom_config={"key": "l"})
        await gate.plugins.reload_changed()
        assert (await told(gate, "other"))["key"] == "l"
        settle(tmp_path, custom_config={"key": 5})
        await gate.plugins.reload_changed()
        assert (await told(gate))["key"] == "l"
        assert "key" in row(gate)["problem"]
        assert row(gate)["fingerprint"] == live
        # Switched off as a whole it is off, whatever waits.
        settle(tmp_path, enabled=False, custom_config={"key": "l"})
        await gate.plugins.reload_changed()
        with pytest.raises(ToolNotFound):
            await gate.call("told", {}, caller=ME)


async def test_what_is_set_holds_for_the_live_version_while_a_newer_one_is_broken(
    tmp_path: Path,
) -> None:
    put(tmp_path)
    settle(tmp_path, custom_config={"key": "k"})
    async with opened(tmp_path, "*") as gate:
        write(tmp_path, code="def (", settings_schema=SCHEMA, tools=TOOLS)
        assert "teller" in (await gate.plugins.reload_changed()).broken
        settle(tmp_path, custom_config={"key": "l"})
        await gate.plugins.reload_changed()
        assert (await told(gate))["key"] == "l"
