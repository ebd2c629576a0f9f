"""Every example in the README and the docs is a file that runs and prints what is written there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
BLOCK = re.compile(r"(<!-- (?:file|output): \S+ -->\n)?```(\w*)\n", re.MULTILINE)
# Blocks that show a shape rather than an example: a tree, a table of text, a diagram.
SHAPES = {"text", "mermaid"}


def printed(command: list[str], cwd: Path) -> str:
    """What a command prints in an empty folder, with our scripts on its path."""
    scripts = Path(sys.executable).parent
    environment = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, text=True, capture_output=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_prints_what_the_docs_show(program: Path, tmp_path: Path) -> None:
    shown = program.with_suffix(".out").read_text("utf-8")
    assert printed([sys.executable, str(program)], tmp_path) == shown


def test_the_command_line_example_prints_what_the_docs_show(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / "project", project, ignore=shutil.ignore_patterns("__pycache__"))
    script = EXAMPLES / "command_line.sh"
    told = ""
    for line in script.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            told += f"$ {line}\n" + printed(["sh", "-c", line], project)
    assert told == script.with_suffix(".out").read_text("utf-8")


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_a_page_shows_no_code_that_is_not_a_file(page: Path) -> None:
    text = page.read_text("utf-8")
    if "Written by `make docs`" in text:
        return
    inside = False
    for marker, language in BLOCK.findall(text):
        inside = not inside
        if not inside:
            continue
        assert marker or language in SHAPES, f"a {language or 'plain'} block that no test runs"
