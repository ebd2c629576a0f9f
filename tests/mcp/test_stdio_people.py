"""`toolgate stdio` as it comes: the person at the client is asked, and hears how far a call is."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.mcp.house import MODES

pytestmark = pytest.mark.req("V1", "S6")
both = pytest.mark.parametrize("mode", MODES)
COMMAND = ["-c", "from toolgate.cli.main import main; main()", "stdio"]
MAILS = '''\
"""Says how far it is, and leaves a line for each mail."""

from pathlib import Path

from toolgate import Call


def mail(to: str, call: Call) -> dict[str, str]:
    call.progress(1, 2, "written")
    with Path("sent").open("a") as sent:
        sent.write(to + "\\n")
    call.progress(2, 2, "sent")
    return {"to": to}
'''
TOOLS = """\
tools:
  - name: mail
    config: {module: mails, function: mail}
    effect: irreversible
    requires_confirmation: true
    input_schema: {type: object, properties: {to: {type: string}}, required: [to]}
"""


@asynccontextmanager
async def started(root: Path, mode: str, *more: str, **callbacks: Any) -> AsyncGenerator[Client]:
    (root / "mails.py").write_text(MAILS)
    (root / "tools").mkdir()
    (root / "tools" / "mails.yaml").write_text(TOOLS)
    server = StdioServerParameters(command=sys.executable, args=[*COMMAND, *more], cwd=root)
    async with Client(stdio_client(server), mode=mode, **callbacks) as client:
        yield client


def sent(root: Path) -> list[str]:
    file = root / "sent"
    return file.read_text().split() if file.exists() else []


class Person:
    """Whoever sits at the client."""

    def __init__(self, action: str) -> None:
        self._action = action
        self.asked = 0

    async def __call__(self, _: Any, params: Any) -> types.ElicitResult:
        assert '"to": "bob"' in params.message
        self.asked += 1
        content = {"confirm": True} if self._action == "accept" else None
        return types.ElicitResult(action=self._action, content=content)  # pyright: ignore[reportArgumentType]


@both
async def test_the_person_at_the_client_is_asked_and_their_yes_runs_it_once(
    tmp_path: Path, mode: str
) -> None:
    person, steps = Person("accept"), list[Any]()

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async with started(tmp_path, mode, elicitation_callback=person) as client:
        done = await client.call_tool("mail", {"to": "bob"}, progress_callback=heard)
    assert (done.is_error, done.structured_content) == (False, {"to": "bob"})
    assert (person.asked, sent(tmp_path)) == (1, ["bob"])
    assert steps == [(1, 2, "written"), (2, 2, "sent")]


@both
async def test_their_no_runs_nothing(tmp_path: Path, mode: str) -> None:
    person = Person("decline")
    async with started(tmp_path, mode, elicitation_callback=person) as client:
        done = await client.call_tool("mail", {"to": "bob"})
    assert (done.is_error, person.asked, sent(tmp_path)) == (True, 1, [])


@both
async def test_an_agent_that_acts_for_nobody_has_nobody_to_ask(tmp_path: Path, mode: str) -> None:
    person = Person("accept")
    async with started(tmp_path, mode, "--user", "", elicitation_callback=person) as client:
        done = await client.call_tool("mail", {"to": "bob"})
    assert done.is_error
    assert "toolgate approvals approve" in getattr(done.content[0], "text", "")
    assert (person.asked, sent(tmp_path)) == (0, [])
