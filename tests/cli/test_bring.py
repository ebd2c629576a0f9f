"""`toolgate tools import` and `reload`: a file is checked against all that is there, then kept."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from toolgate.tools.table import table

pytestmark = pytest.mark.req("C1", "V5")
ONE = "tools: [{name: one, config: {builtin: echo}, effect: pure}]\n"


def test_a_file_is_taken_and_its_tools_are_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(ONE.replace("echo", "timestamp"), "utf-8")
    told = run("tools", "import", "mine.yaml", "--json")
    assert (told.exit_code, as_json(told)) == (0, {"file": "tools/mine.yaml", "tools": ["one"]})
    assert (tmp_path / "tools" / "mine.yaml").read_bytes() == (tmp_path / "mine.yaml").read_bytes()
    assert run("call", "one").exit_code == 0
    again = run("tools", "import", "mine.yaml")
    assert (again.exit_code, "is there already" in again.stderr) == (1, True)
    (tmp_path / "mine.yaml").write_text(ONE.replace("one", "other"), "utf-8")
    told = run("tools", "import", "mine.yaml", "--replace")
    assert told.stdout.startswith("tools/mine.yaml has 1 tool: other.\n")
    assert run("call", "one").exit_code == 1
    assert sorted(os.listdir(tmp_path / "tools")) == ["mine.yaml"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("text", "name", "code", "told"),
    [
        ("tools: [{name: x, efect: pure}]", "mine.yaml", "invalid_specs", "tools/mine.yaml:1"),
        (ONE.replace("one", "there"), "mine.yaml", "name_clash", "there"),
        (ONE, "mine.txt", "invalid_request", "tools/*.yaml"),
    ],
)
def test_what_does_not_fit_is_not_taken(
    run: Run, tmp_path: Path, text: str, name: str, code: str, told: str
) -> None:
    write_tools(tmp_path, ONE.replace("one", "there"), name="there.yaml")
    (tmp_path / name).write_text(text, "utf-8")
    found = run("tools", "import", name)
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith(f"{code}: ")
    assert told in found.stderr
    assert not (tmp_path / "tools" / name).exists()
    assert run("tools", "import", "nothing.yaml").exit_code == 1


def test_a_tool_that_cannot_run_yet_is_told(run: Run, tmp_path: Path) -> None:
    text = "tools: [{name: one, config: {module: nowhere, function: one}}]"
    (tmp_path / "mine.yaml").write_text(text, "utf-8")
    told = run("tools", "import", "mine.yaml")
    assert told.exit_code == 0
    assert "one cannot run yet: module 'nowhere' cannot be imported" in told.stdout


def test_no_link_is_written_through(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "mine.yaml").symlink_to(tmp_path / "target")
    (tmp_path / "mine.yaml").write_text(ONE, "utf-8")
    assert run("tools", "import", "mine.yaml", "--replace").exit_code == 1
    assert not (tmp_path / "target").exists()


def test_reload_says_what_there_is_or_what_is_wrong(run: Run, tmp_path: Path) -> None:
    told = run("tools", "reload")
    assert told.exit_code == 0
    assert f"Every source was read again: {len(table())} tools." in told.stdout
    write_tools(tmp_path, "tools: [{name: x, efect: pure}]")
    found = run("tools", "reload")
    assert (found.exit_code, "tools/mine.yaml:1" in found.stderr) == (1, True)
