"""What each role opens, at a served house: the one table, and nothing besides."""

import asyncio
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.house import open_gate
from tests.server.admins import ROUTES, Asked, House, prepare
from tests.server.serving import Answer, Serving
from tests.server.test_routes import is_problem
from toolgate.server.rights import OPENS, Right, may, roles
from toolgate.tenancy.keys import FreshKey, Role, make

pytestmark = pytest.mark.req("V3")
# One for each who decides: what was agreed to is used by the next call.
CAREFUL = """\
tools:
  - {name: careful_operator, config: {builtin: timestamp}, effect: pure, requires_approval: true}
  - {name: careful_approver, config: {builtin: timestamp}, effect: pure, requires_approval: true}
"""
# What an operator may do about calls, beside looking.
SETTLES = ("calls/{unknown}/settle", "calls/{failed}/again", "undo")


def furnish(root: Path) -> Mapping[str, FreshKey]:
    keys = dict(prepare(root, calls=True))
    (root / "tools" / "careful.yaml").write_text(CAREFUL, "utf-8")

    async def fill() -> None:
        async with open_gate(root) as gate:
            for who, role, tenant in (
                ("operator", Role.OPERATOR, "acme"),
                ("approver", Role.APPROVER, "acme"),
                ("stranger", Role.OPERATOR, "umbrella"),
                ("strange approver", Role.APPROVER, "umbrella"),
            ):
                keys[who] = await gate.tenancy.add_key(role, tenant=tenant, user=f"{who[:3]}@home")

    asyncio.run(fill())
    return keys


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    root = tmp_path_factory.mktemp("roles")
    keys = furnish(root)
    with Serving(root) as server:
        yield House(server, keys)


def get(house: House, who: str, path: str) -> Answer:
    return house.server.get(path, house.keys[who].secret)


def opens_for_operator(asked: Asked) -> bool:
    if asked.house or asked.path.startswith("keys"):
        return False
    return not asked.changes or asked.path in SETTLES


def test_the_table_is_as_it_is_told() -> None:
    assert set(OPENS) == set(Role)
    assert OPENS[Role.ADMIN] == frozenset(Right)
    assert OPENS[Role.AGENT] == {Right.CALL}
    assert OPENS[Role.APPROVER] == {Right.APPROVE}
    assert roles(Right.RULE) == {Role.ADMIN, Role.TENANT_ADMIN}
    assert roles(Right.HOUSE) == {Role.ADMIN}
    assert not may(make(Role.OPERATOR, tenant="acme").key, Right.CALL)


@pytest.mark.parametrize("asked", ROUTES, ids=str)
def test_an_operator_looks_and_settles_and_changes_no_rule(house: House, asked: Asked) -> None:
    opens = opens_for_operator(asked)
    house.prepare(asked)
    assert house.ask("operator", asked).status == (200 if opens else 403)
    if asked.of_tenant:
        house.prepare(asked)
        assert house.ask("stranger", asked).status == 403, "another tenant's is not there"
    is_problem(house.ask("approver", asked), 403, "permission_denied")


@pytest.mark.parametrize("who", ["operator", "approver"])
def test_neither_calls_tools(house: House, who: str) -> None:
    for path in ("/v1/tools", "/v1/tools/echo", "/v1/ledger"):
        is_problem(get(house, who, path), 403, "permission_denied")
    answer = house.server.call("echo", {"text": "x"}, key=house.keys[who].secret)
    is_problem(answer, 403, "permission_denied")
    listed: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    mcp = house.server.ask("POST", "/mcp", key=house.keys[who].secret, body=listed)
    assert (mcp.status, "permission_denied" in mcp.text) == (403, True)
    agent = house.server.call("echo", {"text": "x"}, key=house.keys["agent"].secret)
    assert agent.status in {200, 404}, "the positive control: it is asked about, whatever comes"


def test_an_operator_may_ask_why_and_an_approver_may_not(house: House) -> None:
    path = "/v1/tools/book/explain?agent=billing"
    assert get(house, "operator", path).body["allowed"] is True
    is_problem(get(house, "approver", path), 403, "permission_denied")
    other = get(house, "operator", f"{path}&tenant=umbrella")
    assert other.status in {400, 403}


def waiting(house: House, tool: str) -> str:
    secret = house.keys["agent"].secret
    answer = house.server.ask("POST", "/v1/call", key=secret, body={"tool": tool})
    assert answer.body["status"] == "pending_approval", answer.text
    listed: list[dict[str, Any]] = get(house, "admin", "/v1/approvals").body["approvals"]
    return listed[-1]["id"]


@pytest.mark.parametrize("who", ["operator", "approver"])
def test_both_decide_what_their_tenants_agents_ask(house: House, who: str) -> None:
    asked = waiting(house, f"careful_{who}")
    assert asked in get(house, who, "/v1/approvals").text
    for other in ("stranger", "strange approver"):
        assert asked not in get(house, other, "/v1/approvals").text
        word = house.server.ask(
            "POST", f"/v1/approvals/{asked}/approve", key=house.keys[other].secret, body={}
        )
        missing = get(house, other, "/v1/approvals/apr_none")
        assert (word.status, word.text) == (404, missing.text)
    word = house.server.ask(
        "POST", f"/v1/approvals/{asked}/approve", key=house.keys[who].secret, body={}
    )
    assert word.status == 200
    assert word.body["state"] == "approved"


def test_a_key_of_these_roles_names_no_agent(house: House) -> None:
    for role in ("operator", "approver", "tenant_admin"):
        asked = Asked("POST", "keys", {"tenant": "acme", "role": role, "agent": "billing"})
        is_problem(house.ask("admin", asked), 400, "invalid_request")


def test_who_runs_a_tenant_makes_operators_and_an_operator_makes_nobody(house: House) -> None:
    asked = Asked("POST", "keys", {"role": "approver", "user": "ann"})
    assert house.ask("own", asked).body["role"] == "approver"
    for who in ("operator", "approver", "agent"):
        is_problem(house.ask(who, asked), 403, "permission_denied")


def test_without_the_table_an_approver_would_rule(tmp_path: Path) -> None:
    """The guard-off control."""
    keys = furnish(tmp_path)
    off = "from toolgate.server.route import Route\nRoute.lets_in = lambda route, key: True\n"
    with Serving(tmp_path, before=off) as server:
        house = House(server, keys)
        flag = Asked("PUT", "flags", {"tool": "echo", "enabled": False})
        assert house.ask("approver", flag).status == 200
        assert get(house, "approver", "/v1/tools").status == 200
