"""Sources are asked again while the house is open."""

from pathlib import Path

import pytest

from tests.house import ME, until
from toolgate import Toolgate
from toolgate.settings.settings import Settings

ONE = "tools:\n  - {name: NAME, provider: python, config: {module: string, function: capwords}}\n"


def settings(root: Path, every: float) -> Settings:
    return Settings.model_validate({"root": root, "tools": {"refresh": every}})


@pytest.mark.req("C2")
async def test_a_changed_file_is_taken_over_and_a_broken_one_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "a.yaml").write_text(ONE.replace("NAME", "first"))
    async with Toolgate.open(settings(tmp_path, 0.02)) as gate:
        assert gate.catalog.current.get("first")
        (folder / "a.yaml").write_text(ONE.replace("NAME", "second"))
        await until(lambda: gate.catalog.current.get("second") is not None)
        assert gate.catalog.current.get("first") is None

        (folder / "a.yaml").write_text("tools: 7")
        await until(lambda: not all(one.ok for one in gate.catalog.health()))
        assert gate.catalog.current.get("second"), "the last good part stays"
        (folder / "a.yaml").write_text(ONE.replace("NAME", "third"))
        await until(lambda: gate.catalog.current.get("third") is not None)


@pytest.mark.req("C2")
async def test_a_reload_that_finds_nothing_new_keeps_snapshot_and_decisions(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "a.yaml").write_text(ONE.replace("NAME", "first"))
    async with Toolgate.open(settings(tmp_path, 0)) as gate:
        before = gate.catalog.current
        listed = await gate.discover(ME)
        assert await gate.catalog.reload() is before
        assert await gate.discover(ME) is listed
