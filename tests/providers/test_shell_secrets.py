"""Secrets for commands: handed to the tools they are for, and taken out of what those say."""

import base64
import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.blank import put_blank
from tests.house import ME, STORE
from tests.providers.programs import shell_tool, with_bubblewrap
from toolgate import Toolgate
from toolgate.configuration import load
from toolgate.providers.shell import provider
from toolgate.sandbox.sandbox import Finished
from toolgate.settings.outward import Commands, CommandSecret, Providers
from toolgate.settings.settings import Settings

pytestmark = pytest.mark.req("P4")
VALUE = 'k-1/2"3 secret'
LINES = "-----BEGIN-----\nabcdefghijkl\n-----END-----\n"
SAYS = "printf '%s\\n' \"$TOKEN\"; printf '%s' \"$TOKEN\" | base64; printf '%s' \"$TOKEN\" >&2"
LENGTH = "import os; print(len(os.environ['TOKEN']))"


@pytest.fixture(autouse=True)
def bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    with_bubblewrap(monkeypatch)
    monkeypatch.setenv("HERE_TOKEN", VALUE)
    monkeypatch.setenv("HERE_SHORT", "ab")


def _uncovered(finished: Finished, _hidden: object) -> Finished:
    return finished


def _as_read(value: Any, _raw: bytes, _hidden: object) -> Any:
    return value


def house(
    root: Path, *tools: dict[str, Any], **more: CommandSecret
) -> AbstractAsyncContextManager[Toolgate]:
    (root / "tools").mkdir()
    (root / "tools/shell.json").write_text(json.dumps({"tools": tools}))
    named = {
        "token": CommandSecret(value_env="HERE_TOKEN", tools=("says", "fails", "length")),
        "short": CommandSecret(value_env="HERE_SHORT", tools=("short",)),
        "unset": CommandSecret(value_env="HERE_NOTHING", tools=("unset",)),
    }
    put_blank(root / STORE)
    settings = Settings(root=root, providers=Providers(shell=Commands(secrets=named | more)))
    return Toolgate.open(settings)


def with_token(name: str, *argv: str, secret: str = "token", **config: Any) -> dict[str, Any]:  # noqa: S107
    given = {"secrets": {"TOKEN": secret}, **config}
    return shell_tool(name, *argv, config=given, properties={}, effect="pure")


async def test_a_command_gets_its_secret_and_cannot_say_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = with_token("fails", "bash", "-c", f"{SAYS}; exit 3")
    tools = with_token("says", "bash", "-c", SAYS), fails
    async with house(tmp_path, *tools, with_token("length", "python3", "-c", LENGTH)) as gate:
        # It has it.
        assert (await gate.call("length", {}, caller=ME)).data["stdout"] == f"{len(VALUE)}\n"
        said = await gate.call("says", {}, caller=ME)
        assert said.data["stdout"].split() == ["[secret]", "[secret]"]
        assert said.data["stderr"] == "[secret]"
        failed = await gate.call("fails", {}, caller=ME)
        assert failed.error is not None
        assert "[secret]" in failed.error.message
        assert VALUE not in failed.error.message
        # The guard-off control.
        monkeypatch.setattr(provider, "covered", _uncovered)
        bare = (await gate.call("says", {}, caller=ME)).data["stdout"]
        assert bare.splitlines() == [VALUE, base64.b64encode(VALUE.encode()).decode()]


CUT = "import os; t = os.environ['TOKEN']; os.write({to}, (b'x' * 990) + t.encode() + b'y' * 5000)"


@pytest.mark.parametrize("to", [1, 2])
async def test_a_secret_that_the_end_of_the_output_cuts_off_is_not_told_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: int
) -> None:
    tool = with_token("says", "python3", "-c", CUT.format(to=to), limits={"output": 1_000})
    async with house(tmp_path, tool) as gate:
        said = await gate.call("says", {}, caller=ME)
        assert said.error is not None
        assert said.error.message.endswith("xxx[secret]")
        # The guard-off control.
        monkeypatch.setattr(provider, "covered", _uncovered)
        bare = await gate.call("says", {}, caller=ME)
        assert bare.error is not None
        assert bare.error.message.endswith(f"xxx{VALUE[:10]}")


ESCAPES = r"""import os
print('["' + "".join("\\u%04x" % ord(one) for one in os.environ["TOKEN"]) + '"]')"""


async def test_a_secret_that_json_writes_in_other_words_is_not_told_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, with_token("says", "python3", "-c", ESCAPES, output="json")) as gate:
        said = await gate.call("says", {}, caller=ME)
        assert said.data == ["[secret]"]
        # The guard-off control.
        monkeypatch.setattr(provider, "value_without", _as_read)
        assert (await gate.call("says", {}, caller=ME)).data == [VALUE]


def test_the_settings_say_whose_a_secret_is(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text(
        '[providers.shell.secrets.releases]\nvalue_env = "HERE_TOKEN"\ntools = ["says"]\n'
    )
    assert load(file).providers.shell.secrets["releases"].tools == ("says",)


async def test_a_key_of_several_lines_is_taken_out_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE_LINES", LINES)
    lines = CommandSecret(value_env="HERE_LINES", tools=("one",))
    one = with_token("one", "bash", "-c", 'grep abc <<< "$TOKEN"', secret="lines")  # noqa: S106
    async with house(tmp_path, one, lines=lines) as gate:
        assert (await gate.call("one", {}, caller=ME)).data["stdout"] == "[secret]\n"


@pytest.mark.parametrize(
    ("name", "tool", "said"),
    [
        ("other", {}, "is not this tool's"),
        ("other", {"secret": "nothing"}, "which the settings lack"),
        ("short", {"secret": "short"}, "too short"),
        ("unset", {"secret": "unset"}, "is not set"),
        ("says", {"env": {"TOKEN": "x"}}, "keep one"),
        ("says", {"secrets": {"PATH": "token"}}, "programs are found"),
        ("says", {"secrets": {"TOKEN": "{path}"}}, "ARG_"),
        ("says", {"secrets": {"ARG_TOKEN": "{path}"}}, "names no secret"),
        ("says", {"shell": True}, "free shell with secrets"),
    ],
)
async def test_a_secret_that_a_tool_may_not_have_takes_it_off_the_list(
    tmp_path: Path, name: str, tool: dict[str, Any], said: str
) -> None:
    given = with_token(name, "ls", **tool)
    async with house(tmp_path, given, with_token("length", "ls")) as gate:
        assert said in gate.catalog.current.unusable[name]
        assert VALUE not in gate.catalog.current.unusable[name]
        assert "length" not in gate.catalog.current.unusable
