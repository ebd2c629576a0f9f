"""What a request may say about its task, what it may not claim, and who is told why."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from tests.house import open_gate
from tests.server.serving import Answer, Serving
from tests.server.test_routes import is_problem
from toolgate.tenancy.keys import Role
from toolgate.tenancy.layer import Layer

TOOLS = """\
tools:
  - {name: look, config: {builtin: timestamp}, effect: pure, side_effects: [read_only]}
  - {name: pay, config: {builtin: timestamp}, effect: irreversible, side_effects: [modifies_files]}
  - {name: fetch, config: {builtin: timestamp}, effect: pure, side_effects: [network_access]}
"""
RULES = """\
package toolgate

restrict contains "nobody says much" if input.args.text == "much"

restrict contains "the ticket is closed" if input.context.facts.ticket == "closed"

restrict contains "ann is away" if input.caller.user == "ann"
"""
CLAIMS = {
    "X-Role": "boss",
    "X-Roles": "boss",
    "X-User": "ann",
    "X-Persona": "boss",
    "X-Toolgate-Role": "boss",
    "X-Toolgate-Tenant": "umbrella",
    "X-Forwarded-User": "ann",
    "Roles": "boss",
}

# A door that takes what a header says for what the key says.
BELIEVING = """\
import msgspec
from toolgate.server import app
from toolgate.server.auth import caller_of
told, answer = {}, app.App._answer
async def answered(self, scope, receive, key):
    headers = dict(scope["headers"])
    told.clear()
    for header, field in ((b"x-roles", "roles"), (b"roles", "roles"), (b"x-user", "user")):
        if header in headers:
            text = headers[header].decode()
            told[field] = (text,) if field == "roles" else text
    return await answer(self, scope, receive, key)
app.App._answer = answered
app.caller_of = lambda key: msgspec.structs.replace(caller_of(key), **told)
"""


class Doors(NamedTuple):
    server: Serving
    keys: dict[str, str]

    def call(self, who: str, tool: str, args: Any = None, **more: Any) -> Answer:
        body: dict[str, Any] = {"tool": tool, "args": args or {}, **more}
        return self.server.ask("POST", "/v1/call", key=self.keys[who], body=body)

    def names(self, who: str, query: str = "") -> set[str]:
        tools = self.server.get(f"/v1/tools{query}", self.keys[who]).body["tools"]
        return {tool["name"] for tool in tools}

    def explained(self, query: str) -> Any:
        return self.server.get(f"/v1/tools/echo/explain?{query}", self.keys["admin"]).body


async def _prepare(root: Path) -> dict[str, str]:
    async with open_gate(root) as gate:
        tenancy = gate.tenancy
        await tenancy.set_agent("acme", "billing")
        await tenancy.set_layer("looks", Layer(allow=("look",)), role="clerk")
        await tenancy.set_layer("all", Layer(allow=("group:all",)), role="boss")
        agent = {"tenant": "acme", "agent": "billing"}
        made = {
            "admin": await tenancy.add_key(Role.ADMIN, tenant="acme"),
            "runs": await tenancy.add_key(Role.TENANT_ADMIN, tenant="acme"),
            "agent": await tenancy.add_key(Role.AGENT, **agent),
            "ann": await tenancy.add_key(Role.AGENT, **agent, user="ann"),
            "clerk": await tenancy.add_key(Role.AGENT, **agent, roles=["clerk"]),
            "boss": await tenancy.add_key(Role.AGENT, **agent, roles=["boss"]),
            "stranger": await tenancy.add_key(Role.AGENT, **agent, roles=["stranger"]),
        }
        return {name: fresh.secret for name, fresh in made.items()}


def _house(root: Path) -> dict[str, str]:
    for folder, name, text in (("tools", "mine.yaml", TOOLS), ("policies", "mine.rego", RULES)):
        (root / folder).mkdir()
        (root / folder / name).write_text(text, "utf-8")
    return asyncio.run(_prepare(root))


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Generator[Doors]:
    root = tmp_path_factory.mktemp("task")
    keys = _house(root)
    with Serving(root) as server:
        yield Doors(server, keys)


@pytest.mark.req("G4", "V2")
@pytest.mark.parametrize(
    ("context", "left"),
    [
        ({}, {"look", "pay", "fetch"}),
        ({"read_only": False, "no_web": False}, {"look", "pay", "fetch"}),
        ({"read_only": True}, {"look", "fetch"}),
        ({"no_web": True}, {"look", "pay"}),
        ({"read_only": True, "no_web": True}, {"look"}),
        ({"allow": ["pay"]}, {"pay"}),
        ({"allow": []}, set[str]()),
        ({"deny": ["pay", "fe*"]}, {"look"}),
        ({"allow": ["pay", "look"], "deny": ["pay"]}, {"look"}),
    ],
)
def test_a_task_takes_tools_away_from_its_own_calls(
    doors: Doors, context: dict[str, Any], left: set[str]
) -> None:
    statuses = {
        tool: doors.call("agent", tool, context=context).status for tool in ("look", "pay", "fetch")
    }
    assert statuses == {tool: 200 if tool in left else 404 for tool in statuses}
    assert doors.call("agent", "pay").status == 200, "another call has a task of its own"


@pytest.mark.req("G4", "C4")
def test_a_list_is_what_may_be_called_in_such_a_task(doors: Doors) -> None:
    assert {"look", "pay", "fetch"} <= doors.names("agent")
    assert "pay" not in doors.names("agent", "?read_only=true")
    assert "fetch" not in doors.names("agent", "?no_web=true")
    assert doors.names("agent", "?read_only=false") == doors.names("agent")
    key = doors.keys["agent"]
    assert doors.server.get("/v1/tools/pay", key).status == 200
    assert doors.server.get("/v1/tools/pay?read_only=true", key).status == 404
    wrong = doors.server.get("/v1/tools?read_only=yes", key)
    assert "'read_only'" in is_problem(wrong, 400, "invalid_request")["detail"]
    told = doors.server.get("/v1/tools/pay/explain?read_only=true", doors.keys["admin"]).body
    assert told["allowed"] is False


@pytest.mark.req("G2", "G3")
def test_facts_of_a_task_reach_the_policy(doors: Doors) -> None:
    assert doors.call("agent", "look", context={"facts": {"ticket": "open"}}).status == 200
    closed = doors.call("agent", "look", context={"facts": {"ticket": "closed"}})
    is_problem(closed, 403, "permission_denied")


@pytest.mark.req("G6", "X5")
def test_why_a_call_is_refused_is_told_to_who_may_know(doors: Doors) -> None:
    much = {"text": "much"}
    for who in ("agent", "boss"):
        body = is_problem(doors.call(who, "echo", much), 403, "permission_denied")
        assert not {"phase", "reason"} & body.keys()
        assert "nobody says much" not in str(body)
    for who in ("admin", "runs"):
        body = is_problem(doors.call(who, "echo", much), 403, "permission_denied")
        assert (body["phase"], body["reason"]) == ("policy", "nobody says much")
    for who in ("agent", "admin", "runs"):
        assert doors.call(who, "echo", {"text": "little"}).status == 200


@pytest.mark.req("G5", "V3")
def test_what_a_client_claims_beyond_its_key_is_not_read(doors: Doors) -> None:
    assert doors.names("clerk") == {"look"}
    assert "pay" in doors.names("boss"), "the role that is claimed would open more"
    assert doors.names("stranger") == set(), "a role that is not on record opens nothing"
    query = "?role=boss&roles=boss&persona=boss&user=ann&tenant=umbrella&agent=boss"
    for name, value in CLAIMS.items():
        sent = {"Authorization": f"Bearer {doors.keys['clerk']}", name: value}
        listed = doors.server.ask("GET", f"/v1/tools{query}", headers=sent).body["tools"]
        assert [tool["name"] for tool in listed] == ["look"], name
        called = doors.server.ask("POST", "/v1/call", headers=sent, body={"tool": "pay"})
        is_problem(called, 404, "tool_not_found")
        fine = doors.server.ask("POST", "/v1/call", headers=sent, body={"tool": "look"})
        assert fine.status == 200, name
    for field in ("role", "roles", "user", "persona", "tenant", "agent", "delegation"):
        answer = doors.call("clerk", "look", **{field: "boss"})
        assert field in is_problem(answer, 400, "invalid_request")["detail"]
        inside = doors.call("clerk", "look", context={field: "boss"})
        assert field in is_problem(inside, 400, "invalid_request")["detail"]


@pytest.mark.req("G5", "V3")
def test_a_door_that_read_the_claims_would_open_more_and_less(tmp_path: Path) -> None:
    """The guard-off control."""
    keys = _house(tmp_path)
    with Serving(tmp_path, before=BELIEVING) as server:
        for name in ("X-Roles", "Roles"):
            sent = {"Authorization": f"Bearer {keys['clerk']}", name: "boss"}
            listed = server.ask("GET", "/v1/tools", headers=sent).body["tools"]
            assert {"look", "pay"} <= {tool["name"] for tool in listed}
            called = server.ask("POST", "/v1/call", headers=sent, body={"tool": "pay"})
            assert (called.status, called.body["ok"]) == (200, True)
        sent = {"Authorization": f"Bearer {keys['agent']}", "X-User": "ann"}
        away = server.ask("POST", "/v1/call", headers=sent, body={"tool": "look"})
        is_problem(away, 403, "permission_denied")
        assert server.call("pay", key=keys["clerk"]).status == 404, "it is the claim that opens it"


@pytest.mark.req("V3", "G3")
def test_a_key_stands_for_its_user(doors: Doors) -> None:
    is_problem(doors.call("ann", "look"), 403, "permission_denied")
    assert doors.call("agent", "look").status == 200


@pytest.mark.req("G6")
def test_an_admin_can_ask_about_anybody_and_any_call(doors: Doors) -> None:
    def deciding(query: str) -> tuple[bool, str]:
        told = doors.explained(query)
        refused = [one["reason"] for one in told["verdicts"] if not one["allowed"]]
        return told["allowed"], "; ".join(refused)

    assert deciding("agent=billing") == (True, "")
    much = quote('{"text": "much"}')
    assert deciding(f"agent=billing&args={much}") == (False, "nobody says much")
    assert deciding("agent=billing&user=ann&args={}") == (False, "ann is away")
    assert deciding("agent=billing&role=boss") == (True, "")
    assert "clerk" in deciding("agent=billing&role=clerk")[1]
    assert "stranger" in deciding("role=boss&role=stranger")[1], "none is left out"
    assert "stranger" in deciding("role=stranger&role=boss")[1]
    assert "stranger" in deciding("role=boss,stranger")[1]
    for wrong in ("args=x", "args=[]", "agent=Not%20One", "no_web=maybe"):
        path = f"/v1/tools/echo/explain?{wrong}"
        answer = doors.server.get(path, doors.keys["admin"])
        is_problem(answer, 400, "invalid_request")
    theirs = doors.server.get("/v1/tools/echo/explain?tenant=umbrella", doors.keys["runs"])
    missing = doors.server.get("/v1/tools/echo/explain?tenant=nobody", doors.keys["runs"])
    assert is_problem(theirs, 400, "invalid_request") == missing.body
