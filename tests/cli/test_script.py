"""The installed `toolgate` command, as a shell meets it."""

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from tests.house import STORE, until

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
def test_a_terminal_gets_a_table_and_the_state_in_colour(tmp_path: Path) -> None:
    write_tools(
        tmp_path,
        "tools: [{name: marked, config: {builtin: timestamp}, description: '[b]x'},"
        " {name: nowhere, config: {module: nowhere_to_be_found, function: f}}]",
    )
    run("tools", "disable", "timestamp", cwd=tmp_path)
    text = on_a_terminal("tools", "list", cwd=tmp_path)
    assert b"\x1b[1m" in text
    for word, colour in ((b"on", b"32"), (b"off", b"33"), (b"unusable", b"31")):
        assert b"\x1b[" + colour + b"m" + word in text
    assert b"[b]x" in text, "a description is no markup"
    assert b"\x1b[32m" not in on_a_terminal("tools", "list", cwd=tmp_path, NO_COLOR="1")


def test_a_list_of_tools_has_one_line_for_each_on_a_terminal(tmp_path: Path) -> None:
    wide = on_a_terminal("tools", "list", cwd=tmp_path, NO_COLOR="1", COLUMNS="2000").decode()
    assert "in one call." in wide, "there is room for all of it"
    for columns in ("100", "80"):
        shown = on_a_terminal("tools", "list", cwd=tmp_path, NO_COLOR="1", COLUMNS=columns).decode()
        assert len(shown.splitlines()) == len(wide.splitlines()), columns
        assert "similarity_search" in shown.split()


@pytest.mark.req("V5")
def test_what_the_next_command_needs_is_never_cut(run: Run, tmp_path: Path) -> None:
    """A list on a narrow screen names what can be approved, shown and revoked."""
    asks = "{name: asks, config: {builtin: timestamp}, effect: irreversible, "
    marks = "{name: marks_something_with_a_long_name, config: {builtin: timestamp}, "
    write_tools(
        tmp_path, f"tools: [{asks}requires_approval: true}}, {marks}effect: irreversible}}]"
    )
    run("keys", "add", "--role", "agent", "--tenant", "demo", "--agent", "a", "--create")
    run("call", "asks")
    run("call", "marks_something_with_a_long_name")
    for noun, field in (("approvals", "id"), ("ledger", "call_id"), ("keys", "id")):
        known = as_json(run(noun, "list", "--json"))
        assert known
        for columns in ("80", "40"):
            shown = on_a_terminal(
                noun, "list", cwd=tmp_path, COLUMNS=columns, NO_COLOR="1"
            ).decode()
            assert "…" not in shown, shown
            assert {one[field] for one in known} <= set(shown.split()), shown


def test_plots_are_drawn_on_a_terminal_and_are_json_elsewhere(tmp_path: Path) -> None:
    args = ("call", "plot_braille", "--args", '{"series": [1, 3, 2], "height": 4}')
    drawn = on_a_terminal(*args, cwd=tmp_path).decode()
    assert "┤" in drawn
    assert "\\n" not in drawn
    assert '"text"' not in drawn
    for elsewhere in (
        on_a_terminal(*args, "--json", cwd=tmp_path),
        subprocess.run([SCRIPT, *args], cwd=tmp_path, capture_output=True, check=True).stdout,
    ):
        assert json.loads(elsewhere)
    picture = on_a_terminal(
        "call", "plot_sixel", "--args", '{"series": [1, 3, 2], "height": 200}', cwd=tmp_path
    )
    assert picture.lstrip().startswith(b"\x1bP")
    assert picture.rstrip().endswith(b"\x1b\\")


def test_a_server_that_is_tried_is_told_of_once_and_alone(tmp_path: Path) -> None:
    away = 'url = "http://127.0.0.1:1/mcp"\n'
    (tmp_path / "toolgate.toml").write_text(
        f"[mcp.servers.one]\n{away}[mcp.servers.two]\n{away}", "utf-8"
    )
    tried = subprocess.run(
        [SCRIPT, "servers", "test", "one"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.returncode == 1
    assert tried.stdout.startswith("Server one does not answer: 0 tools.\n")
    assert len(tried.stdout.splitlines()) == 2
    assert tried.stderr == ""


def on_a_terminal(*arguments: str, cwd: Path, **environment: str) -> bytes:
    ours, theirs = pty.openpty()
    known = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    try:
        shown = subprocess.Popen(
            [str(SCRIPT), *arguments],
            cwd=cwd,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env=known | {"TERM": "xterm-256color", "COLUMNS": "200"} | environment,
        )
        os.close(theirs)
        text = b""
        while chunk := _read(ours):
            text += chunk
        assert shown.wait(50) == 0
    finally:
        os.close(ours)
    return text


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:
        # Linux says so when the other end of a terminal is closed.
        return b""


@pytest.mark.parametrize(
    "arguments",
    [["tools", "list"], ["tools", "list", "--json"], ["--help"], ["tools", "list", "--help"]],
    ids=" ".join,
)
def test_an_answer_that_cannot_be_written_is_told(tmp_path: Path, arguments: list[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("skipped: no /dev/full here")
    with full.open("wb") as stdout:
        ended = subprocess.run(
            [str(SCRIPT), *arguments],
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == (
        "The answer cannot be written (No space left on device). What was done stays done.\n"
    )


def test_who_closes_the_pipe_hears_nothing(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"'{SCRIPT}' tools list | true"],
        cwd=tmp_path,
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == (b"", b"")


WAITING = """\
tools:
  - {name: send, config: {module: waiting, function: wait}, effect: irreversible}
  - {name: look, config: {module: waiting, function: wait}, effect: idempotent}
"""
MODULE = '''\
"""A tool that never ends by itself, and says that it has begun."""

import asyncio
from pathlib import Path


async def wait() -> None:
    Path("begun").touch()
    await asyncio.Event().wait()
'''


@pytest.mark.req("S3")
@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("send", "the call may have taken effect: check before you call it again."),
        ("look", "it can be called again."),
    ],
)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["words", "json"])
async def test_a_call_that_is_stopped_says_how_things_stand(
    tmp_path: Path, tool: str, told: str, more: list[str]
) -> None:
    write_tools(tmp_path, WAITING)
    (tmp_path / "waiting.py").write_text(MODULE, "utf-8")
    with subprocess.Popen(  # noqa: ASYNC220  begun, not waited for
        [str(SCRIPT), "call", tool, *more],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as calling:
        try:
            await until(lambda: (tmp_path / "begun").exists() or calling.poll() is not None)
            calling.send_signal(signal.SIGINT)
            stdout, stderr = calling.communicate(timeout=50)
        finally:
            calling.kill()
    assert calling.returncode == 130, stderr
    assert told in (stdout if more else stderr)
    assert ("interrupted" in stdout, "Traceback" in stderr) == (bool(more), False)
    if tool == "send":
        with closing(sqlite3.connect(tmp_path / STORE)) as connection:
            [row] = connection.execute("SELECT state FROM tool_execution_log").fetchall()
        assert row[0] == "unknown", "and so it is on record"
