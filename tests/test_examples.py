"""Every example in the README and the docs is a file that runs and prints what is written there.

`python -m tests.test_examples` writes down anew what they print; `make docs` then puts it into the
pages. Read the difference: it is what users will see.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.servers.fixtures import needed
from tests.surroundings import around
from toolgate import configuration
from toolgate.toolfiles import read_tool_file

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
SCRIPTS = sorted(EXAMPLES.glob("*.sh"))
SETTINGS = sorted(EXAMPLES.glob("settings/*.toml"))
BLOCK = re.compile(r"(<!-- (?:file|output): \S+ -->\n)?```(\w*)\n", re.MULTILINE)
# Blocks that show a shape rather than an example: a tree, a table of text, a diagram.
SHAPES = {"text", "mermaid"}
# How every script begins, after the line that says what it shows: it changes no file of ours.
START = (
    "set +e # a command that answers no exits with 1; what follows is run all the same",
    'copy=$(mktemp -d) && cp -r "$(dirname "$0")"/* "$copy" || exit 1',
    'cd "$copy/project" && rm -rf .toolgate policies || exit 1',
)
# What differs from run to run, and what stands for it.
PASSING = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "2026-11-15T12:00:00Z"),
    (re.compile(r"call_[0-9a-f]{28}"), "call_18b826ea1b63c41b3d27ee570000"),
    (re.compile(r"revision [0-9a-f]{16}"), "revision 7cfe36e581e40dab"),
    (re.compile(r"\b\d+:(?!0{64})[0-9a-f]{64}"), f"2:{'5f3c9d1e' * 8}"),
    (re.compile(r"\d+ records?, \d+ seals?"), "2 records, 2 seals"),
)


def printed(
    command: list[str],
    cwd: Path,
    *,
    errors: bool = False,
    more: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """What a command prints in a folder, with our scripts on its path."""
    scripts = Path(sys.executable).parent
    copies = copies_beside(cwd)
    environment = {
        **more,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "LOGNAME": "ann",
        # Where the scripts make their copies, and the programs their settings.
        "TMPDIR": str(copies),
    }
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors else subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in (done.stdout if errors else done.stderr), done.stderr or done.stdout
    told = done.stdout
    for what, instead in PASSING:
        told = what.sub(instead, told)
    return told


def copies_beside(folder: Path) -> Path:
    """Where whatever an example needs beside its own folder is made."""
    beside = folder.with_name(f"{folder.name}-copies")
    beside.mkdir(exist_ok=True)
    return beside


def told_by(example: Path, folder: Path) -> str:
    """What a program prints, or a script with each of its lines before what that line prints."""
    if example.suffix == ".py":
        with around(example, copies_beside(folder)) as found:
            return printed([found.python, str(example)], folder, more=found.environment)
    lines = example.read_text("utf-8").splitlines()
    shown = [
        f"printf '%s\\n' {shlex.quote(f'$ {line}')}\n{line}" for line in lines[1 + len(START) :]
    ]
    whole = "\n".join((*START, *shown))
    # `-e`, because a reader may have it on, and the script is to go on all the same.
    return printed(["sh", "-e", "-c", whole, str(example)], folder, errors=True)


@pytest.mark.parametrize("example", [*PROGRAMS, *SCRIPTS], ids=lambda path: path.name)
def test_an_example_prints_what_the_docs_show_and_leaves_nothing_but_the_default_store(
    example: Path, tmp_path: Path
) -> None:
    told = needed(lambda: told_by(example, tmp_path))
    assert told == example.with_suffix(".out").read_text("utf-8")
    assert {found.name for found in tmp_path.iterdir()} <= {".toolgate"}


@pytest.mark.parametrize("example", SCRIPTS, ids=lambda path: path.name)
def test_a_script_begins_with_a_copy_of_its_own(example: Path) -> None:
    says, *begins = example.read_text("utf-8").splitlines()[: 1 + len(START)]
    assert says.startswith("# ")
    assert tuple(begins) == START


def test_no_two_examples_share_what_they_print() -> None:
    assert not {one.stem for one in PROGRAMS} & {one.stem for one in SCRIPTS}


@pytest.mark.parametrize("file", SETTINGS, ids=lambda path: path.stem)
def test_the_settings_in_the_docs_can_be_read(file: Path) -> None:
    assert configuration.load(file, {}).root == file.parent


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


def test_a_tool_file_that_the_queue_page_shows_can_be_saved_as_it_stands(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "queue-calls.md").read_text("utf-8")
    shown = re.findall(r"```text\n(tools:\n.*?)```", page, re.DOTALL)
    found: list[str] = []
    for number, text in enumerate(shown):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text, "utf-8")
        found += [spec.name for spec in read_tool_file(file, file.name)]
    assert found == ["send_invoice", "crm_add_note"]


def test_the_tests_that_the_failure_table_names_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "docs/failures.md").read_text())
    assert len(named) > 10
    for file, name in named:
        assert f"def {name}" in (ROOT / file).read_text("utf-8"), f"{file}::{name}"


def test_the_architecture_page_shows_the_layers_as_they_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert "```text\n" + "\n".join(layers) + "\n```" in page


def test_the_architecture_page_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    shown = page[page.index("src/toolgate/\n") : page.index("\n```\n\nLayers")]
    named = set(re.findall(r"[\w.]+\.py|(?<=  )[a-z]+/", shown))
    rooms = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in (ROOT / "src" / "toolgate").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__.py"}
    assert rooms - named == set()
    assert {one for one in named if not (ROOT / "src" / "toolgate" / one).exists()} == set()


def write() -> None:
    """Write down what every example prints."""
    for example in (*PROGRAMS, *SCRIPTS):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "here")
            place.mkdir()
            example.with_suffix(".out").write_text(told_by(example, place), "utf-8")


if __name__ == "__main__":
    write()
