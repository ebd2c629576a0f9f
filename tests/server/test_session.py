"""A session over HTTP: what it did counts for a policy that looks back, and for no other agent."""

import asyncio
from pathlib import Path

import pytest

from tests.house import open_gate
from tests.server.serving import Serving
from tests.server.test_routes import is_problem
from toolgate.tenancy.keys import Role

TOOLS = """\
tools:
  - {name: look, config: {builtin: timestamp}, effect: pure}
  - {name: pay, config: {builtin: timestamp}, effect: irreversible}
"""
RULES = """\
package toolgate

restrict contains "look before you pay" if {
    input.tool.name == "pay"
    not input.history.session.tools.look
}
"""


async def keys_of(root: Path, *agents: str) -> list[str]:
    async with open_gate(root) as gate:
        found: list[str] = []
        for agent in agents:
            await gate.tenancy.set_agent("acme", agent)
            key = await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent=agent)
            found.append(key.secret)
        return found


@pytest.mark.req("G3", "V2")
def test_what_a_session_did_is_its_own_agents(tmp_path: Path) -> None:
    for folder, name, text in (("tools", "mine.yaml", TOOLS), ("policies", "mine.rego", RULES)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text, "utf-8")
    mine, theirs = asyncio.run(keys_of(tmp_path, "billing", "support"))

    with Serving(tmp_path) as server:

        def call(key: str, tool: str, session: object) -> tuple[int, str]:
            body = {"tool": tool, "session": session}
            answer = server.ask("POST", "/v1/call", key=key, body=body)
            return answer.status, answer.body.get("code", "")

        assert call(mine, "pay", "s-1") == (403, "permission_denied")
        assert call(mine, "look", "s-1") == (200, "")
        assert call(mine, "pay", "s-1") == (200, "")
        assert call(mine, "pay", "s-2") == (403, "permission_denied")
        assert call(theirs, "pay", "s-1") == (403, "permission_denied"), "the name is not enough"
        for odd in ("", 7, "s" * 257, ["s-1"]):
            answer = server.ask("POST", "/v1/call", key=mine, body={"tool": "look", "session": odd})
            assert "1 to 256 characters" in is_problem(answer, 400, "invalid_request")["detail"]
