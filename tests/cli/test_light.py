"""A command loads what it needs, and says its help as the place takes it that reads it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from toolgate.cli.main import COMMANDS

MAIN = "from toolgate.cli.main import main; main()"
# What only some houses have, and what draws tables on a terminal.
HEAVY = (
    "aiohttp",
    "alembic",
    "rich",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.orm",
    "toolgate.importing",
    "uvicorn",
    "yaml",
)


def loaded(folder: Path, *arguments: str) -> set[str]:
    told = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv[0] = 'toolgate'\n{MAIN}"
    )
    ended = subprocess.run(
        [sys.executable, "-c", told, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return set(ended.stderr.split())


@pytest.mark.req("V5")
def test_a_list_on_sqlite_loads_no_other_database_and_no_parser_of_documents(
    tmp_path: Path,
) -> None:
    found = loaded(tmp_path, "tools", "list")
    assert "toolgate.store.sqlite" in found
    assert sorted(found & set(HEAVY)) == []


@pytest.mark.req("V5")
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_in_a_pipe_is_plain_and_narrow(run: Run, command: str) -> None:
    said = run(*command.split(), "--help")
    assert said.exit_code == 0
    lines = said.stdout.splitlines()
    assert lines[0].startswith("Usage: ")
    assert max(map(len, lines)) <= 80
    assert not set(said.stdout) & set("╭╮╰╯│─")
