"""`toolgate init` writes a project that runs, and writes over nothing."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json
from tests.server.serving import Serving
from toolgate.cli.init import FILES
from toolgate.configuration import load


@pytest.mark.req("V5")
def test_init_writes_a_project_that_runs(run: Run, tmp_path: Path) -> None:
    result = run("init", "--json")
    assert (result.exit_code, as_json(result)) == (0, {"written": list(FILES)})
    load(tmp_path / "toolgate.toml", {})
    counted = run("call", "word_count", "--args", '{"text": "one two three"}', "--json")
    assert as_json(counted)["data"] == {"words": 3}
    there = run("call", "read_file", "--args", '{"path": "README.md"}', "--json")
    assert "tools may read and write" in as_json(there)["data"]["text"]
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    again = run("init")
    assert again.exit_code == 2
    assert "exist already; nothing was written" in again.stderr
    assert before == {name: (tmp_path / name).read_bytes() for name in FILES}


def test_the_commented_settings_of_init_are_the_defaults(run: Run, tmp_path: Path) -> None:
    run("init", "project")
    file = tmp_path / "project" / "toolgate.toml"
    text = file.read_text("utf-8")
    lines = [line.removeprefix("# ") if " = " in line else line for line in text.splitlines()]
    file.write_text("\n".join(lines), "utf-8")
    assert load(file, {}).model_dump() == load(None, {}).model_dump()


def test_init_where_nothing_can_be_written_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("init", "file/below")
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)


@pytest.mark.parametrize("name", [*FILES, "tools", "policies", "agent_files"])
def test_init_never_writes_through_a_link(run: Run, tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    here = tmp_path / "here"
    (here / name).parent.mkdir(parents=True)
    (here / name).symlink_to(target)
    result = run("init", "here")
    assert (result.exit_code, f"{name} exists already" in result.stderr) == (2, True)
    assert not target.exists()
    (here / name).unlink()
    assert run("init", "here").exit_code == 0, "it was the link"


def test_a_link_that_appears_at_the_last_moment_is_not_followed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    (tmp_path / "my_tools.py").symlink_to(target)

    def unseen(_path: object) -> bool:
        return False

    monkeypatch.setattr(os.path, "lexists", unseen)
    result = run("init")
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)
    assert not target.exists()


@pytest.mark.req("V5")
def test_what_init_writes_is_served_and_its_policy_holds(run: Run, tmp_path: Path) -> None:
    run("init")
    assert run("doctor").exit_code == 0
    checked = run("policy", "test", "--json")
    assert (checked.exit_code, [one["ok"] for one in as_json(checked)]) == (0, [True, True])
    with Serving(tmp_path) as server:
        key = server.greeting["keys"]["agent"]
        assert server.call("word_count", {"text": "one two"}, key=key).body["data"] == {"words": 2}
