"""What a shell offers when Tab is pressed, asked as shells ask."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import write_tools
from tests.cli.test_script import SCRIPT, run

pytestmark = pytest.mark.req("V5")


def offered(words: str, cwd: Path, **environment: str) -> list[str]:
    """The last of the words is the one that is not finished."""
    parts = words.split(" ")
    told = run(
        cwd=cwd,
        COMP_WORDS=words,
        COMP_CWORD=str(len(parts) - 1),
        _TOOLGATE_COMPLETE="complete_bash",
        **environment,
    )
    assert (told.returncode, told.stderr) == (0, "")
    return told.stdout.split()


def test_commands_options_and_values_are_offered(tmp_path: Path) -> None:
    assert offered("toolgate to", tmp_path) == ["tools"]
    assert offered("toolgate tools s", tmp_path) == ["search", "show"]
    assert offered("toolgate call echo --key", tmp_path) == ["--key-file"]
    assert "tenant_admin" in offered("toolgate keys add --role ", tmp_path)


def test_tools_are_offered_as_far_as_files_know_them(tmp_path: Path) -> None:
    write_tools(tmp_path, "tools: [{name: echo_twice, config: {builtin: echo}}]")
    assert offered("toolgate call ech", tmp_path) == ["echo", "echo_twice"]
    assert offered("toolgate tools show ech", tmp_path) == ["echo", "echo_twice"]
    assert not (tmp_path / ".toolgate").exists(), "nothing is opened for it"
    write_tools(tmp_path, "tools: [{", name="bad.yaml")
    assert offered("toolgate call ech", tmp_path) == ["echo", "echo_twice"]
    assert offered("toolgate call ech", tmp_path, TOOLGATE_URL="http://127.0.0.1:1") == []


def test_bash_takes_what_is_shown(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("skipped: no bash here")
    script = (
        f"source <('{SCRIPT}' --show-completion bash); COMP_WORDS=(toolgate doc); COMP_CWORD=1; "
        f"_toolgate_completion '{SCRIPT}'; echo \"${{COMPREPLY[@]}}\""
    )
    told = subprocess.run(
        [bash, "--norc", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (told.stdout.split(), told.stderr) == (["doctor"], "")


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".bash_completions/toolgate.sh"),
        ("zsh", ".zfunc/_toolgate"),
        ("fish", ".config/fish/completions/toolgate.fish"),
    ],
)
def test_it_is_installed_for_each_shell(tmp_path: Path, shell: str, place: str) -> None:
    shown = run("--show-completion", shell, cwd=tmp_path)
    assert (shown.returncode, "toolgate" in shown.stdout) == (0, True)
    told = run("--install-completion", shell, cwd=tmp_path, HOME=str(tmp_path))
    assert told.returncode == 0, told.stderr
    assert "TOOLGATE_COMPLETE" in (tmp_path / place).read_text("utf-8")
    assert run("--show-completion", "tcsh", cwd=tmp_path).returncode == 2
    assert os.environ.get("HOME") != str(tmp_path)


def test_the_shell_that_one_sits_at_need_not_be_named(tmp_path: Path) -> None:
    shown = run("--show-completion", cwd=tmp_path, SHELL="/usr/bin/fish")
    assert shown.stdout == run("--show-completion", "fish", cwd=tmp_path).stdout
    other = run("--show-completion", cwd=tmp_path, SHELL="/bin/tcsh")
    assert (other.returncode, other.stdout) == (2, "")
