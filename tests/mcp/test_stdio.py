"""`toolgate stdio`: a real process, the official client, and lines that are none."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.house import open_gate
from tests.mcp.house import META, MODES
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.first import first_keys
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("V1")
COMMAND = [sys.executable, "-c", "from toolgate.cli.main import main; main()", "stdio"]
PRINTS = '''\
"""Says things where only messages belong."""


def noisy(text: str) -> str:
    print("hello from a tool")
    return text
'''
TOOLS = """\
tools:
  - name: noisy
    config: {module: noisy_tools, function: noisy}
    effect: pure
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
"""


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_starts_it_lists_and_calls(tmp_path: Path, mode: str) -> None:
    (tmp_path / "noisy_tools.py").write_text(PRINTS)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "noisy.yaml").write_text(TOOLS)
    started = StdioServerParameters(
        command=COMMAND[0], args=COMMAND[1:], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}
    )
    async with Client(stdio_client(started), mode=mode) as client:
        assert "noisy" in [one.name for one in (await client.list_tools()).tools]
        # What a tool prints does not get between the messages.
        done = await client.call_tool("noisy", {"text": "hi"})
        assert [getattr(one, "text", "") for one in done.content] == ["hi"]


async def test_no_key_is_made_where_none_could_be_shown(tmp_path: Path) -> None:
    [answer] = _talk(tmp_path, _message("resources/list"), env={})
    assert answer["result"]["resources"][1]["uri"] == "focal://tools/agent/assistant/enabled"
    async with open_gate(tmp_path) as gate:
        assert not gate.tenancy.world.keys
        assert await first_keys(gate.tenancy) is not None, "the first server shows them"


def test_an_error_before_the_first_message_can_be_had_as_json(tmp_path: Path) -> None:
    ended = _run(tmp_path, b"", "--agent", "nobody", "--json")
    assert ended.returncode == 1
    assert orjson.loads(ended.stdout)["error"]["code"] == "invalid_request"


async def test_a_key_in_the_environment_says_who_calls(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        tenancy = gate.tenancy.by("test")
        await tenancy.add_tenant("acme")
        await tenancy.set_agent("acme", "clerk", Mode.ALL)
        key = await tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk", user="ann")
    [answer] = _talk(tmp_path, _message("resources/list"), env={"TOOLGATE_KEY": key.secret})
    assert answer["result"]["resources"][0]["uri"] == "focal://tools/tenant/acme/available"
    wrong = _run(tmp_path, b"", env={"TOOLGATE_KEY": "tg_agent_wrong"})
    assert (wrong.returncode, wrong.stdout) == (1, b"")
    assert b"unauthenticated" in wrong.stderr
    assert b"TOOLGATE_KEY" in wrong.stderr
    assert b"Authorization" not in wrong.stderr, "that is how another door says it"


def test_an_agent_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = _run(tmp_path, b"", "--agent", "nobody")
    assert done.returncode == 1
    assert b"There is no agent 'nobody'" in done.stderr
    assert b"toolgate agents set nobody --tenant demo" in done.stderr


def test_lines_that_are_no_messages_are_answered_and_the_next_one_works(tmp_path: Path) -> None:
    lines = [
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b"x" * (5 * 1024 * 1024),
        orjson.dumps(_message("tools/call", name="echo", arguments={"text": "hi"})),
    ]
    done = _run(tmp_path, b"\n".join(lines) + b"\n")
    answers = [orjson.loads(line) for line in done.stdout.splitlines()]
    codes = sorted(one["error"]["code"] for one in answers if "error" in one)
    assert codes == [-32700, -32700, -32700, -32700, -32600]
    [good] = [one for one in answers if "result" in one]
    assert good["result"]["structuredContent"] == {"text": "hi"}
    assert done.returncode == 0


def test_what_was_asked_before_the_end_is_answered(tmp_path: Path) -> None:
    """The last line has no end, and nobody writes any more."""
    raw = orjson.dumps(_message("tools/call", name="echo", arguments={"text": "hi"}))
    done = _run(tmp_path, raw)
    assert orjson.loads(done.stdout)["result"]["structuredContent"] == {"text": "hi"}


@pytest.mark.parametrize("kind", ["file", "device", "closed"])
def test_whatever_standard_input_is_it_is_read_to_its_end(tmp_path: Path, kind: str) -> None:
    """`toolgate stdio <file`, `</dev/null` and `<&-`."""
    raw = orjson.dumps(_message("tools/call", name="echo", arguments={"text": "hi"}))
    file = tmp_path / "messages"
    file.write_bytes(b"x" * (5 * 1024 * 1024) + b"\n" + raw + b"\n")
    where = {"file": str(file), "device": os.devnull, "closed": "&-"}[kind]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" <{where}', "sh", *COMMAND],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    answers = [orjson.loads(line) for line in done.stdout.splitlines()]
    if kind == "file":
        assert answers[0]["error"]["code"] == -32700
        assert answers[1]["result"]["structuredContent"] == {"text": "hi"}
    else:
        assert answers == []


def _message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": META}}


def _talk(root: Path, *messages: Any, env: dict[str, str]) -> list[Any]:
    done = _run(root, b"".join(orjson.dumps(one) + b"\n" for one in messages), env=env)
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def _run(
    root: Path, given: bytes, *more: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *more],
        input=given,
        capture_output=True,
        check=False,
        cwd=root,
        env=os.environ | (env or {}),
        timeout=50,
    )
