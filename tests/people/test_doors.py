"""Approvals through HTTP and on the command line: who sees them, who decides, in which words."""

import asyncio
import json
import socket
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from tests.cli.conftest import run as run  # noqa: PLC0414  the fixture
from tests.house import open_gate, until
from tests.server.serving import Answer, Serving
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("S6", "V2", "V5")
TOOLS = """\
tools:
  - name: careful
    config: {module: asked_tools, function: careful}
    effect: irreversible
    requires_approval: true
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
  - name: confirmed
    config: {module: asked_tools, function: careful}
    effect: irreversible
    requires_confirmation: true
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
"""
MODULE = '''\
"""What the served tools name."""


def careful(text: str) -> str:
    return f"did {text}"
'''


def tools_in(root: Path) -> None:
    write_tools(root, TOOLS)
    (root / "asked_tools.py").write_text(MODULE, "utf-8")


class House(NamedTuple):
    server: Serving
    keys: Mapping[str, str]

    def ask(self, who: str, method: str, path: str, body: Any = None) -> Answer:
        return self.server.ask(method, f"/v1/{path}", key=self.keys[who], body=body)

    def pending(self, text: str, tool: str = "careful", who: str = "agent") -> str:
        answer = self.server.call(tool, {"text": text}, key=self.keys[who])
        assert answer.body["status"] == "pending_approval", answer.text
        return answer.body["error"]["details"]["approval_id"]


async def _keys(root: Path) -> Mapping[str, str]:
    async with open_gate(root) as gate:
        tenancy = gate.tenancy
        for tenant in ("acme", "umbrella"):
            await tenancy.set_agent(tenant, "billing")
        await tenancy.set_agent("acme", "other")
        made = {
            "admin": await tenancy.add_key(Role.ADMIN, tenant="acme"),
            "own": await tenancy.add_key(Role.TENANT_ADMIN, tenant="acme"),
            "stranger": await tenancy.add_key(Role.TENANT_ADMIN, tenant="umbrella"),
            "agent": await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing"),
            "ann": await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing", user="ann"),
            "other": await tenancy.add_key(Role.AGENT, tenant="acme", agent="other"),
            "foreign": await tenancy.add_key(Role.AGENT, tenant="umbrella", agent="billing"),
        }
        return {name: fresh.secret for name, fresh in made.items()}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    root = tmp_path_factory.mktemp("asked")
    tools_in(root)
    keys = asyncio.run(_keys(root))
    with Serving(root) as server:
        yield House(server, keys)


def test_through_http_an_admin_sees_decides_and_the_call_runs(house: House) -> None:
    id_ = house.pending("one")
    listed = house.ask("own", "GET", "approvals").body["approvals"]
    [shown] = [one for one in listed if one["id"] == id_]
    assert (shown["tool"], shown["kind"], shown["state"]) == ("careful", "approval", "waiting")
    assert shown["args"] == '{\n  "text": "one"\n}'
    decided = house.ask("own", "POST", f"approvals/{id_}/approve", {"reason": "fine"})
    assert (decided.status, decided.body["state"], decided.body["reason"]) == (
        200,
        "approved",
        "fine",
    )
    assert decided.body["decided_by"].startswith("key_")
    ran = house.server.call("careful", {"text": "one"}, key=house.keys["agent"])
    assert ran.body["data"] == "did one"
    assert house.pending("one") != id_


def test_through_http_a_no_is_a_403_with_its_reason(house: House) -> None:
    id_ = house.pending("two")
    assert house.ask("admin", "POST", f"approvals/{id_}/deny", {"reason": "never"}).status == 200
    refused = house.server.call("careful", {"text": "two"}, key=house.keys["agent"])
    assert (refused.status, refused.body["code"]) == (403, "approval_denied")
    assert "never" in refused.body["detail"]
    again = house.ask("admin", "POST", f"approvals/{id_}/approve")
    assert (again.status, again.body["state"]) == (400, "denied")


@pytest.mark.parametrize("verb", ["", "/approve", "/deny"])
@pytest.mark.parametrize("who", ["stranger", "foreign", "other"])
def test_to_others_it_looks_like_nothing(house: House, who: str, verb: str) -> None:
    id_ = house.pending("three")
    method = "POST" if verb else "GET"
    there = house.ask(who, method, f"approvals/{id_}{verb}")
    nowhere = house.ask(who, method, f"approvals/apr_000{verb}")
    assert (there.status, there.text) == (nowhere.status, nowhere.text)
    assert (there.status, there.body["code"]) == (404, "approval_not_found")
    assert "no such approval" in there.body["detail"]
    assert id_ not in house.ask(who, "GET", "approvals?state=all").text
    assert house.ask("own", "GET", f"approvals/{id_}").body["state"] == "waiting"


def test_the_agent_that_asked_sees_it_and_cannot_decide_it(house: House) -> None:
    id_ = house.pending("four")
    assert id_ in house.ask("agent", "GET", "approvals").text
    for verb in ("approve", "deny"):
        refused = house.ask("agent", "POST", f"approvals/{id_}/{verb}")
        assert (refused.status, refused.body["code"]) == (403, "permission_denied")
    assert house.ask("own", "POST", f"approvals/{id_}/approve").status == 200


def test_an_admin_does_not_approve_what_the_same_key_asked_for(house: House) -> None:
    id_ = house.pending("five", who="admin")
    assert house.ask("admin", "POST", f"approvals/{id_}/approve").status == 403
    # Neither does another key that stands for nobody else in that tenant.
    assert house.ask("own", "POST", f"approvals/{id_}/approve").status == 403


def test_the_user_confirms_and_the_agent_alone_does_not(house: House) -> None:
    id_ = house.pending("six", "confirmed", "ann")
    assert house.ask("agent", "POST", f"approvals/{id_}/approve").status == 404
    confirmed = house.ask("ann", "POST", f"approvals/{id_}/approve")
    assert confirmed.body["decided_by"].startswith("ann (key_")
    ran = house.server.call("confirmed", {"text": "six"}, key=house.keys["ann"])
    assert ran.body["data"] == "did six"


def test_long_arguments_have_to_be_looked_at_whole(house: House) -> None:
    id_ = house.pending("x" * 5_000)
    blocked = house.ask("own", "POST", f"approvals/{id_}/approve")
    assert (blocked.status, blocked.body["code"]) == (400, "invalid_request")
    whole = house.ask("own", "GET", f"approvals/{id_}").body
    assert whole["is_cut"] is False
    body = {"seen": whole["seen"]}
    assert house.ask("own", "POST", f"approvals/{id_}/approve", body).status == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "approvals?state=sometimes", None, 400),
        ("GET", "approvals?limit=0", None, 400),
        ("GET", "approvals?colour=red", None, 400),
        ("GET", "approvals/", None, 404),
        ("GET", "approvalsx", None, 404),
        ("GET", "approvals/a/b", None, 404),
        ("GET", "approvals/a/approve/c", None, 404),
        ("POST", "approvals", {}, 405),
        ("DELETE", "approvals/apr_1", None, 405),
        ("GET", "approvals/apr_1/approve", None, 405),
        ("POST", "approvals/apr_1/approve", {"reason": 7}, 400),
        ("POST", "approvals/apr_1/approve", {"by": "boss"}, 400),
        ("POST", "approvals/apr_1/deny", {"seen": "x"}, 400),
    ],
)
def test_what_does_not_fit_is_refused(
    house: House, method: str, path: str, body: Any, status: int
) -> None:
    answer = house.ask("own", method, path, body)
    assert answer.status == status, answer.text
    if status == 405:
        assert answer.headers["allow"] in {"GET, HEAD", "POST"}


@pytest.fixture
def cli(run: Run, tmp_path: Path) -> Run:
    tools_in(tmp_path)
    return run


def test_on_the_command_line_it_is_listed_shown_and_approved(cli: Run) -> None:
    called = cli("call", "careful", "--args", '{"text": "a\\u202eb"}', "--json")
    id_ = as_json(called)["error"]["details"]["approval_id"]
    listed = cli("approvals", "list")
    assert id_ in listed.stdout
    assert "\\u202e" in listed.stdout
    shown = cli("approvals", "show", id_)
    assert '"text": "a\\u202eb"' in shown.stdout
    assert "assistant of demo" in shown.stdout
    approved = cli("approvals", "approve", id_, "--reason", "fine")
    assert approved.exit_code == 0, approved.output
    assert "may run once" in approved.stdout
    assert cli("call", "careful", "--args", '{"text": "a\\u202eb"}').exit_code == 0
    [row] = as_json(cli("approvals", "list", "--state", "all", "--json"))
    assert (row["state"], row["reason"]) == ("used", "fine")
    assert row["decided_by"].startswith("cli:")
    again = cli("approvals", "approve", id_, "--json")
    assert again.exit_code == 1
    assert as_json(again)["error"]["code"] == "invalid_request"


def test_on_the_command_line_long_arguments_need_their_code(cli: Run) -> None:
    text = "x" * 5_000
    called = cli("call", "careful", "--args", f'{{"text": "{text}"}}', "--json")
    id_ = as_json(called)["error"]["details"]["approval_id"]
    assert cli("approvals", "approve", id_).exit_code == 1
    code = as_json(cli("approvals", "show", id_, "--json"))["seen"]
    assert code in cli("approvals", "show", id_).stdout
    assert cli("approvals", "approve", id_, "--seen", code).exit_code == 0


def test_on_the_command_line_it_is_denied_and_what_is_not_there_is_said(cli: Run) -> None:
    called = cli("call", "careful", "--args", '{"text": "x"}', "--json")
    id_ = as_json(called)["error"]["details"]["approval_id"]
    assert cli("approvals", "deny", id_, "--reason", "no").exit_code == 0
    refused = cli("call", "careful", "--args", '{"text": "x"}')
    assert refused.exit_code == 1
    assert "approval_denied" in refused.output
    assert cli("approvals", "show", "apr_none").exit_code == 1
    assert cli("approvals", "list", "--state", "maybe").exit_code == 2


@pytest.mark.req("S5")
def test_an_agents_policy_for_newer_messages_is_set_and_listed(cli: Run, tmp_path: Path) -> None:
    assert cli("agents", "set", "clerk", "--mode", "listed").exit_code == 0
    told = cli("agents", "set", "clerk", "--newer-messages", "absorb")
    assert "absorb" in told.stdout
    [row] = [one for one in as_json(cli("agents", "list", "--json")) if one["id"] == "clerk"]
    assert (row["newer_messages"], row["mode"]) == ("absorb", "listed")
    assert cli("agents", "set", "clerk", "--newer-messages", "ignore").exit_code == 2

    async def audited() -> Any:
        async with open_gate(tmp_path) as gate:
            [record] = [
                one
                for one in await gate.tenancy.audit(tenant="demo")
                if one.change == "set_newer_messages"
            ]
            return record

    record = asyncio.run(audited())
    assert record.who.startswith("cli:")
    assert record.details["newer_messages"] == "absorb"


@pytest.mark.req("S5")
def test_through_http_an_agents_policy_for_newer_messages_is_set(house: House) -> None:
    put = house.ask(
        "own", "PUT", "admin/agents/other", {"tenant": "acme", "newer_messages": "queue"}
    )
    assert (put.status, put.body["newer_messages"], put.body["mode"]) == (200, "queue", "all")
    listed = house.ask("own", "GET", "admin/agents?tenant=acme").body["agents"]
    assert {one["id"]: one["newer_messages"] for one in listed}["other"] == "queue"
    bad = house.ask("own", "PUT", "admin/agents/other", {"tenant": "acme", "newer_messages": "x"})
    assert bad.status == 400


async def test_whoever_hangs_up_does_not_wait_any_more(tmp_path: Path) -> None:
    """The only place to wait is free again as soon as its client has gone."""
    narrow = "from toolgate.executor.people import approval\napproval._MOST_OF_TENANT = 1\n"
    tools_in(tmp_path)
    keys = await _keys(tmp_path)
    with Serving(tmp_path, before=narrow) as server:
        body = {"tool": "careful", "args": {"text": "gone"}, "wait_s": 50}
        waits = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        raw = json.dumps(body).encode()
        head = f"POST /v1/call HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        head += f"Authorization: Bearer {keys['agent']}\r\nContent-Length: {len(raw)}\r\n\r\n"
        waits.sendall(head.encode() + raw)

        def answers_at_once() -> bool:
            given = body | {"wait_s": 0.5}
            began = time.monotonic()
            answer = server.ask("POST", "/v1/call", key=keys["agent"], body=given)
            assert answer.body["status"] == "pending_approval", answer.text
            return time.monotonic() - began < 0.4

        await until(answers_at_once)
        waits.close()
        await until(lambda: not answers_at_once(), seconds=15)
