"""Code, a project with tests and git repositories, of which some mean ill."""

import asyncio
import subprocess
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

# Where a repository's program would leave its mark, were it run.
MARK = "a-program-of-the-repository-was-run"
SHAPES = """import math


def area(radius):
    return math.pi * radius**2
"""
TESTS = """import time

import pytest

from shapes import area


def test_area():
    assert area(0) == 0


def test_wrong():
    assert area(1) == 3, "a circle is rounder"


@pytest.mark.skip(reason="later")
def test_later():
    raise AssertionError


@pytest.mark.xfail
def test_expected():
    assert area(1) == 4


@pytest.fixture
def broken():
    raise RuntimeError("no such thing")


def test_with_fixture(broken):
    pass
"""
HOSTILE_TESTS = """import os
import socket
from pathlib import Path


def test_writes_into_the_project():
    Path(__file__).with_name("written.txt").write_text("x")


def test_reads_outside():
    Path("${outside}").read_text()


def test_connects():
    socket.create_connection(("127.0.0.1", ${port}), timeout=2)


def test_sees_our_surroundings():
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert not [name for name in os.environ if "TOOLGATE" in name or "SECRET" in name]
"""


async def prepare(root: Path, _settings: dict[str, Any], stack: AsyncExitStack) -> dict[str, str]:
    """All of it below `files/code`, and a listener that whoever is outside reaches."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    await stack.enter_async_context(server)
    port = str(server.sockets[0].getsockname()[1])
    home = root / "files" / "code"
    project = home / "project"
    project.mkdir(parents=True)
    (project / "shapes.py").write_text(SHAPES)
    (project / "test_shapes.py").write_text(TESTS)
    (project / "unused.py").write_text("import os\n")
    (project / "good.json").write_text('{"a": 1}\n')
    (project / "bad.toml").write_text("a = 1\nb = \n")
    (project / "latin.py").write_bytes("x = 'caf\xe9'\n".encode("latin-1"))
    # A repository's own settings are not read: else there would be nothing to find.
    (project / "ruff.toml").write_text('[lint]\nignore = ["ALL"]\n')
    _hostile_tests(home / "hostile-tests", root, port)
    plain(home / "repository")
    linked(home, root)
    hostile(home / "hostile", root / MARK)
    (home / "writable").mkdir()
    deep = "[" * 60_000 + "]" * 60_000
    long = "#" * 200_001
    return {"code_root": str(root), "code_deep": deep, "code_long": long, "code_port": port}


def _hostile_tests(folder: Path, root: Path, port: str) -> None:
    folder.mkdir()
    text = HOSTILE_TESTS.replace("${outside}", str(root / "outside.txt")).replace("${port}", port)
    (folder / "test_hostile.py").write_text(text)
    (folder / "test_exits.py").write_text("import os\n\n\ndef test_exits():\n    os._exit(0)\n")
    (folder / "test_lies.py").write_text(
        "import os, signal\n\n\ndef test_lies():\n    os.kill(os.getppid(), signal.SIGKILL)\n"
    )


def git(folder: Path, *words: str) -> None:
    """As a person would run it, without that person's settings."""
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        },
    )


def plain(folder: Path) -> None:
    """One commit ahead of its upstream, with changes of every kind."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for name in ("kept.txt", "changed.txt", "gone.txt", "old.txt"):
        (folder / name).write_text(f"{name}\n" * 5)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "remote", "add", "origin", "https://git.example.org/x.git")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(folder, "branch", "-q", "--set-upstream-to=origin/main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "two")
    (folder / "changed.txt").write_text("other\n")
    (folder / "gone.txt").unlink()
    (folder / "added.txt").write_text("new\n")
    git(folder, "add", "added.txt")
    git(folder, "mv", "old.txt", "naïve name.txt")
    (folder / "folder").mkdir()
    (folder / "folder" / "untracked.txt").write_text("x")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "ignored.log").write_text("x")


def linked(home: Path, root: Path) -> None:
    """Work trees whose data is elsewhere: inside of the root, and outside."""
    git(home / "repository", "worktree", "add", "-q", "-b", "side", str(home / "worktree"))
    away = root / "repository-outside"
    plain(away)
    git(away, "worktree", "add", "-q", "-b", "side", str(home / "worktree-outside"))
    (home / "gitdir-outside").mkdir()
    (home / "gitdir-outside" / ".git").write_text(f"gitdir: {away}/.git\n")
    (home / "link-outside").mkdir()
    (home / "link-outside" / ".git").symlink_to(away / ".git")
    (home / "common-outside").mkdir()
    git(home / "common-outside", "init", "-q")
    (home / "common-outside" / ".git" / "commondir").write_text(f"{away}/.git\n")


def hostile(folder: Path, mark: Path) -> None:
    """A repository that names a program wherever git takes one."""
    plain(folder)
    program = folder / "run.sh"
    program.write_text(f"#!/bin/sh\ntouch {mark} {folder}/{MARK}\ncat\n")
    program.chmod(0o755)
    other = folder / "more.cfg"
    other.write_text(f"[core]\n\tfsmonitor = {program}\n")
    config = folder / ".git" / "config"
    config.write_text(
        config.read_text()
        + f"[core]\n\tfsmonitor = {program}\n\thooksPath = {folder}\n\tpager = {program}\n"
        f"\tsshCommand = {program}\n\teditor = {program}\n\tattributesFile = {folder}/attributes\n"
        f'[diff]\n\texternal = {program}\n[diff "bad"]\n\ttextconv = {program}\n'
        f'[filter "bad"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n'
        f"\trequired = true\n[alias]\n\tstatus = !{program}\n[include]\n\tpath = {other}\n"
        f'[includeIf "gitdir:{folder}/"]\n\tpath = {other}\n[pager]\n\tstatus = {program}\n'
        f"[credential]\n\thelper = !{program}\n[uploadpack]\n\tpackObjectsHook = {program}\n"
        f'[remote "origin"]\n\tuploadpack = {program}\n\tpromisor = true\n'
    )
    (folder / ".gitattributes").write_text("* filter=bad diff=bad merge=bad\n")
    for name in ("post-index-change", "fsmonitor-watchman", "pre-commit"):
        hook = folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(program.read_text())
        hook.chmod(0o755)
