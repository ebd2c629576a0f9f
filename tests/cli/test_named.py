"""Commands that messages and pages name are there."""

import re
from pathlib import Path

import pytest

from tests.cli.test_commands import every_command

ROOT = Path(__file__).parent.parent.parent
# As code: in a page between backticks or behind a prompt, in a message wherever it stands.
IN_A_PAGE = re.compile(r"(?:`|^\$ )toolgate ([a-z]+)(?: ([a-z]+))?", re.MULTILINE)
IN_A_MESSAGE = re.compile(r"toolgate ([a-z]+) ([a-z]+)")
COMMANDS = frozenset(every_command())
GROUPS = frozenset(one[0] for one in COMMANDS if len(one) == 2)


def missing(words: tuple[str, str]) -> bool:
    """Of a group its commands count; what stands behind any other command is its arguments."""
    first, _ = words
    return words not in COMMANDS if first in GROUPS else (first,) not in COMMANDS


@pytest.mark.req("V5")
def test_a_command_that_a_message_names_is_there() -> None:
    named = {
        (file.name, *words)
        for file in sorted((ROOT / "src").rglob("*.py"))
        for words in IN_A_MESSAGE.findall(file.read_text("utf-8"))
        if words[0] in GROUPS
    }
    assert len(named) > 20, "the text is found at all"
    assert [one for one in sorted(named) if missing(one[1:])] == []


@pytest.mark.req("V5")
def test_a_command_that_a_page_names_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.sh")]
    named = {
        (page.name, *words)
        for page in pages
        for words in IN_A_PAGE.findall(page.read_text("utf-8"))
    }
    assert len(named) > 50, "the text is found at all"
    assert [one for one in sorted(named) if missing(one[1:])] == []


def test_a_command_that_is_not_there_is_found() -> None:
    assert missing(("agents", "add"))
    assert missing(("audit", ""))
    assert missing(("nothing", ""))
    assert not missing(("agents", "set"))
    assert not missing(("call", "echo"))
