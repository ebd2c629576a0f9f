"""The plugin of the docs does what its page says, and its settings file fits it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.house import ME
from tests.plugins.folders import agree, opened, row, told
from tests.servers.sandboxes import bubblewrap
from toolgate.errors import InvalidRequest
from toolgate.testing.plugin import called

pytestmark = pytest.mark.req("U1", "U3")
EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_the_example_is_live_with_the_settings_of_its_page(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "plugins", tmp_path / "plugins")
    (tmp_path / "plugin_settings").mkdir()
    shutil.copy(EXAMPLES / "settings" / "units.json", tmp_path / "plugin_settings")
    async with opened(tmp_path, "*") as gate:
        assert row(gate, "units")["problem"] == ""
        said = await told(gate, "convert_units", value=1, unit="mi", to="km")
        assert said == {"value": 1.609, "unit": "km"}
        assert gate.catalog.current.specs["convert_units"].timeout == 2


def test_whoever_tests_a_plugin_gets_what_an_agent_gets(tmp_path: Path) -> None:
    folder = EXAMPLES / "plugins" / "units"
    args = {"value": 0, "unit": "C", "to": "K"}
    assert called(folder, "convert_units", args) == {"value": 273.15, "unit": "K"}
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text(json.dumps({"name": "broken"}), "utf-8")
    with pytest.raises(InvalidRequest, match="The plugin 'broken' cannot be used: manifest"):
        called(broken, "nothing")


@pytest.mark.timeout(120)
async def test_the_portable_example_rolls_dice_once_it_is_agreed_to(tmp_path: Path) -> None:
    bubblewrap()
    shutil.copytree(EXAMPLES / "portable", tmp_path / "plugins")
    async with opened(tmp_path) as gate:
        await agree(gate, "dice")
        assert row(gate, "dice")["problem"] == ""
        assert (await gate.servers.tested("dice_table"))["ok"], gate.servers.rows()
        output = await gate.call("mcp:dice_table:roll", {"sides": 2}, caller=ME)
        assert output.to_human() in {"1", "2"}
