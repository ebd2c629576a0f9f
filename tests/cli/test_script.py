"""The installed `toolgate` command, as a shell meets it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("toolgate")


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=50,
        check=False,
    )


@pytest.mark.req("V5")
def test_it_calls_a_tool_and_ends_with_zero_one_or_two(tmp_path: Path) -> None:
    fine = run("call", "echo", "--args", '{"text": "hi"}', cwd=tmp_path)
    assert (fine.returncode, fine.stderr) == (0, "")
    assert '"hi"' in fine.stdout
    assert "\x1b" not in fine.stdout
    assert run("call", "nothing", cwd=tmp_path).returncode == 1
    assert run("call", cwd=tmp_path).returncode == 2


def test_it_does_not_load_what_help_does_not_need(tmp_path: Path) -> None:
    told = run("--help", cwd=tmp_path, PYTHONPROFILEIMPORTTIME="1").stderr
    for heavy in ("sqlalchemy", "alembic", "uvicorn", "aiohttp", "pydantic"):
        assert f" {heavy}\n" not in told
    assert "typer" in told


def test_the_environment_is_read(tmp_path: Path) -> None:
    wrong = run("tools", "list", cwd=tmp_path, TOOLGATE_SERVER__PORT="x")
    assert wrong.returncode == 1
    assert "TOOLGATE_SERVER__PORT: server.port" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_bytes_that_are_no_text_do_not_end_in_a_trace(tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff")
    for arguments in (
        ["call", odd],
        ["call", "echo", "--args", '{"text": "x"}', "--user", odd, "--turn", odd],
        ["explain", odd, "--agent", odd],
    ):
        for more in ([], ["--json"]):
            ended = run(*arguments, *more, cwd=tmp_path)
            assert (ended.returncode, ended.stdout) == (1, "")
            assert ended.stderr == "An argument is not UTF-8 text.\n"


@pytest.mark.req("V5")
def test_a_terminal_gets_a_table(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        shown = subprocess.Popen(
            [str(SCRIPT), "tools", "list"],
            cwd=tmp_path,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "200"},
        )
        os.close(theirs)
        text = b""
        while chunk := _read(ours):
            text += chunk
        assert shown.wait(50) == 0
    finally:
        os.close(ours)
    assert b"\x1b[1m" in text
    assert b"echo" in text


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:
        # Linux says so when the other end of a terminal is closed.
        return b""
