"""The same commands on the local store and on a running server: the same answers."""

import asyncio
import re
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import write_tools
from tests.house import open_gate
from tests.server.serving import Serving
from toolgate.cli.main import app
from toolgate.tenancy.first import USER, FirstKeys, first_keys

TOOLS = """\
tools:
  - {name: book, config: {builtin: timestamp}, effect: compensatable, compensation: {tool: unbook}}
  - {name: unbook, config: {builtin: timestamp}, effect: idempotent, description: Take it back.}
  - {name: careful, config: {builtin: timestamp}, effect: irreversible, requires_approval: true}
  - {name: broken, config: {module: nowhere, function: none}, effect: pure}
"""
RULE = 'package toolgate\n\nbanned["never"] contains "nobody may" if true\n'
RELATION = "tool:echo#executor@user:ann"
# One after the other on each: what one of them leaves is there for the next. Behind a ~ each has
# its own words, or its own times, and ends in the same way.
STEPS = """\
tenants add acme --why because
tenants add acme --plan team
tenants list
agents set billing --tenant acme --mode listed
agents set billing --tenant acme --newer-messages absorb
agents override billing echo --tenant acme --approval
agents list --tenant acme
tools list
tools list --tenant acme --agent billing
tools list --tenant demo --agent assistant --role clerk --read-only
tools search take back
tools search take back --tenant demo
tools search nothing of the kind
tools show book
tools show boook
tools disable echo --tenant acme
tools enable echo
tools enable echo --tenant acme --agent billing
tools enable broken
tools disable echo --tenant nobody
tools reset echo --tenant acme
tools export --tenant demo --format anthropic
tools reload
roles set clerk --categories text --web --tenant acme
roles set guest --allow group:read
roles list
roles remove clerk --tenant acme
layers set safe --deny mail.* --reason careful --tenant acme
layers permit safe echo --tenant acme
layers permit nothing echo
layers list
layers remove safe --tenant acme
~ layers remove safe --tenant acme
roles remove guest
personas set boss --can-add-tools
personas restrict boss echo --reason no
personas list
personas allow boss echo
personas unset boss
relations add tool:echo#executor@user:ann --tenant acme
relations list --tenant acme
relations remove tool:echo#executor@user:ann --tenant acme
limits rate 600/minute --tenant acme
limits budget money 5 --tenant acme
limits list
limits rate none --tenant acme
usage --tenant acme
policy put mine rule.rego
policy list
policy remove mine
~ policy remove mine
explain echo
explain echo --tenant acme --agent billing
explain nothing
agents remove billing --tenant acme
~ keys list
keys add --role agent --tenant acme --agent helper --create
keys revoke nobody
audit list --limit 2
call echo --args '{"text": "hi"}'
call echo --args '{}'
~ call nothing
call book --turn t-1 --idempotency-key k-1
call book --turn t-1 --idempotency-key k-1
call careful
approvals list
ledger list
ledger list --state failed
ledger show nothing
ledger undo --turn t-1 --why changed
ledger undo --turn nothing --why changed
"""
_ODD = (
    (r"call_[0-9a-f]+", "CALL"),
    (r"key_[0-9A-Za-z_-]+|k_[0-9a-f]+", "KEY"),
    (r"tg_[a-z_]+_[0-9A-Za-z_-]{40,}", "SECRET"),
    (r"ap[a-z]*_[0-9a-f]{8,}", "APPROVAL"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", "WHEN"),
    (r"\d{15,}|\d{10}\.\d+", "WHEN"),
    (r"cli:\w+", "KEY"),
    (r'"duration_ms": [\d.e-]+', "DURATION"),
    (r'"[0-9a-f]{64}"', "DIGEST"),
    (r"[ -]{2,}", "  "),
)


class Ran(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


def plain(text: str) -> str:
    for pattern, word in _ODD:
        text = re.sub(pattern, word, text)
    return text


class House:
    """Somewhere to run commands: in its folder, or against its server."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment

    def run(self, *arguments: str) -> Ran:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self._folder)
            for name, value in self._environment.items():
                patch.setenv(name, value)
            found = CliRunner().invoke(app, list(arguments))
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        return Ran(found.exit_code, plain(found.stdout), plain(found.stderr))


class Houses(NamedTuple):
    local: House
    admin: House
    agent: House


def furnish(root: Path) -> FirstKeys:
    write_tools(root, TOOLS)

    async def first() -> FirstKeys | None:
        async with open_gate(root) as gate:
            return await first_keys(gate.tenancy)

    keys = asyncio.run(first())
    assert keys is not None
    return keys


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Generator[Houses]:
    here, there, elsewhere = (tmp_path_factory.mktemp(name) for name in ("here", "there", "else"))
    furnish(here)
    keys = furnish(there)
    for folder in (here, elsewhere):
        (folder / "rule.rego").write_text(RULE, "utf-8")
    with Serving(there) as server:
        url = f"http://127.0.0.1:{server.port}"
        yield Houses(
            House(here, {}),
            House(elsewhere, {"TOOLGATE_URL": url, "TOOLGATE_KEY": keys.admin}),
            House(elsewhere, {"TOOLGATE_URL": url, "TOOLGATE_KEY": keys.agent}),
        )


def words_of(line: str) -> list[str]:
    return [word.strip("'") for word in re.findall(r"'[^']*'|\S+", line)]


@pytest.mark.req("V5")
@pytest.mark.parametrize("line", STEPS.splitlines())
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["words", "json"])
def test_a_command_says_the_same(houses: Houses, line: str, more: list[str]) -> None:
    words = words_of(line.removeprefix("~ "))
    calls = words[0] == "call"
    there = houses.agent if calls else houses.admin
    # The first key says whom its agent acts for; on this machine the command does.
    whom = ["--user", USER] if calls else []
    local, far = houses.local.run(*words, *whom, *more), there.run(*words, *more)
    if line.startswith("~"):
        assert (far.exit_code, first_word(far)) == (local.exit_code, first_word(local))
    else:
        assert far == local
    assert "No such" not in far.stderr


def first_word(ran: Ran) -> str:
    return f"{ran.stdout} {ran.stderr}".split()[0]
