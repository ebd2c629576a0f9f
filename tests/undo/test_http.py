"""The ledger, undo and settling over HTTP; and once-only calls."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.house import open_gate
from tests.server.serving import Answer, Serving
from tests.undo.served import done, stocked
from toolgate.tenancy.keys import Role


class Keys(NamedTuple):
    admin: str
    mine: str
    other: str
    foreign: str


class Served(NamedTuple):
    server: Serving
    keys: Keys
    root: Path

    def call(self, tool: str, group: str = "", **more: Any) -> Answer:
        key, headers = more.pop("key", self.keys.mine), more.pop("headers", None)
        turn = {"turn": {"group": group}} if group else {}
        body = {"tool": tool, **turn, **more}
        return self.server.ask("POST", "/v1/call", key=key, body=body, headers=headers)

    def post(self, path: str, key: str, **body: Any) -> Answer:
        return self.server.ask("POST", path, key=key, body=body)


async def _keys(root: Path) -> Keys:
    async with open_gate(root) as gate:
        tenancy = gate.tenancy
        for tenant, agent in (("acme", "billing"), ("acme", "shipping"), ("globex", "billing")):
            await tenancy.set_agent(tenant, agent)
        admin = await tenancy.add_key(Role.ADMIN, tenant="acme")
        mine = await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
        other = await tenancy.add_key(Role.AGENT, tenant="acme", agent="shipping")
        foreign = await tenancy.add_key(Role.AGENT, tenant="globex", agent="billing")
        return Keys(*(fresh.secret for fresh in (admin, mine, other, foreign)))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    root = stocked(tmp_path_factory.mktemp("shop"))
    keys = asyncio.run(_keys(root))
    with Serving(root) as server:
        yield Served(server, keys, root)


@pytest.mark.req("S2", "V2")
def test_the_same_idempotency_key_runs_once_in_the_body_and_in_the_header(served: Served) -> None:
    first = served.call("mail", args={"to": "key1"}, idempotency_key="k-1").body
    again = served.call("mail", args={"to": "key1"}, headers={"Idempotency-Key": "k-1"}).body
    assert (first["ok"], first["cached"], again["cached"]) == (True, False, True)
    assert again["call_id"] == first["call_id"]
    assert done(served.root).count("mail:key1") == 1
    conflict = served.call("mail", args={"to": "key2"}, idempotency_key="k-1")
    assert (conflict.status, conflict.body["code"]) == (422, "idempotency_conflict")
    # A tenant's, and an agent's, keys are its own.
    theirs = served.call("mail", args={"to": "key3"}, idempotency_key="k-1", key=served.keys.other)
    assert (theirs.body["ok"], theirs.body["cached"]) == (True, False)


@pytest.mark.req("S2", "V2")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"idempotency_key": 7}, "'idempotency_key' is a text"),
        ({"idempotency_key": ""}, "1 to 255 visible ASCII"),
        ({"idempotency_key": "a b"}, "1 to 255 visible ASCII"),
        ({"idempotency_key": "x" * 256}, "1 to 255 visible ASCII"),
        ({"idempotency_key": "a", "headers": {"Idempotency-Key": "b"}}, "Two different"),
        ({"wait_s": "5"}, "'wait_s' is a number of seconds"),
        ({"wait_s": True}, "'wait_s' is a number of seconds"),
        ({"wait_s": -1}, "'wait_s' is a number of seconds"),
        ({"wait_s": 601}, "'wait_s' is a number of seconds"),
        ({"idempotency_kei": "a"}, "is not known"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_runs(
    served: Served, more: dict[str, Any], said: str
) -> None:
    before = len(done(served.root))
    answer = served.call("mail", args={"to": "odd"}, **more)
    assert (answer.status, answer.body["code"]) == (400, "invalid_request")
    assert said in answer.body["detail"]
    assert len(done(served.root)) == before


@pytest.mark.req("S4", "V2")
def test_a_turn_group_is_listed_and_taken_back(served: Served) -> None:
    server, keys = served.server, served.keys
    ids = [
        served.call("pay", "g-1", args={"amount": amount}, wait_s=0).body["call_id"]
        for amount in (1, 2)
    ]
    listed = server.get("/v1/ledger?turn_group=g-1&limit=1", keys.mine).body
    assert [one["call_id"] for one in listed["calls"]] == ids[1:]
    rest = server.get(f"/v1/ledger?turn_group=g-1&before={listed['next']}", keys.mine).body
    assert [one["call_id"] for one in rest["calls"]] == ids[:1]
    assert rest["next"] is None
    shown = server.get(f"/v1/calls/{ids[0]}", keys.mine).body
    assert (shown["state"], shown["args"]) == ("succeeded", {"amount": 1})
    assert shown["output"]["data"] == {"payment": "p1"}
    assert shown["undo"]["plan"]["args"] == {"payment": "p1"}
    report = served.post("/v1/undo", keys.mine, turn_group="g-1", reason="a mistake").body
    assert report["ok"]
    assert [one["call_id"] for one in report["items"]] == ids[::-1]
    assert done(served.root)[-2:] == ["refund:p2", "refund:p1"]
    found = server.get("/v1/ledger?turn_group=g-1&state=compensated&tool=pay", keys.mine).body
    assert len(found["calls"]) == 2


@pytest.mark.req("S4", "V2")
def test_what_others_did_is_not_there(served: Served) -> None:
    server, keys = served.server, served.keys
    mine = served.call("pay", "g-2", args={"amount": 9}).body["call_id"]
    for key in (keys.other, keys.foreign):
        hidden = server.get(f"/v1/calls/{mine}", key)
        missing = server.get("/v1/calls/call_0", key)
        assert hidden.status == missing.status == 404
        assert hidden.body["detail"].replace(mine, "call_0") == missing.body["detail"]
        assert server.get("/v1/ledger?turn_group=g-2", key).body["calls"] == []
        assert served.post("/v1/undo", key, call_id=mine).body["code"] == "call_not_found"
        assert served.post("/v1/undo", key, turn_group="g-2").body["code"] == "call_not_found"
    assert "refund:p9" not in done(served.root)
    assert served.post("/v1/undo", keys.mine, call_id=mine).body["ok"]


@pytest.mark.req("S3", "V2")
def test_an_admin_settles_runs_again_and_takes_back_with_a_reason(served: Served) -> None:
    server, keys = served.server, served.keys
    lost = served.call("mail", "g-3", args={"to": "nobody"}).body["call_id"]
    unknown = server.get("/v1/admin/calls?tenant=acme&state=unknown", keys.admin).body["calls"]
    assert [one["call_id"] for one in unknown] == [lost]
    path = f"/v1/admin/calls/{lost}"
    unsigned = served.post(f"{path}/settle", keys.admin, tenant="acme", happened=True)
    assert (unsigned.status, unsigned.body["code"]) == (400, "invalid_request")
    again = served.post(f"{path}/again", keys.admin, tenant="acme", why="nothing came").body
    linked = server.get(f"{path}?tenant=acme", keys.admin).body["linked"]
    assert [one["call_id"] for one in linked] == [again["call_id"]]
    settled = served.post(
        f"{path}/settle", keys.admin, tenant="acme", happened=False, why="asked them"
    )
    assert settled.body["state"] == "failed"
    paid = served.call("pay", "g-4", args={"amount": 4}).body["call_id"]
    report = served.post("/v1/admin/undo", keys.admin, tenant="acme", turn_group="g-4", why="sorry")
    assert (report.body["ok"], report.body["items"][0]["call_id"]) == (True, paid)
    audit = server.get("/v1/admin/audit?tenant=acme&limit=100", keys.admin).body["records"]
    told = {(one["change"], one["details"].get("call_id"), one["why"]) for one in audit}
    assert {
        ("call.again", lost, "nothing came"),
        ("call.settled", lost, "asked them"),
        ("call.undo", paid, "sorry"),
    } <= told
    for method, more in (("POST", "/settle"), ("POST", "/again"), ("GET", "")):
        refused = server.ask(method, path + more, key=keys.mine, body={} if more else None)
        assert refused.status == 403


@pytest.mark.req("V2")
def test_paths_and_methods_that_are_not_there(served: Served) -> None:
    server, keys = served.server, served.keys
    assert server.get("/v1/undo", keys.mine).status == 405
    assert server.ask("POST", "/v1/ledger", key=keys.mine, body={}).status == 405
    assert server.get("/v1/calls/", keys.mine).status == 404
    assert server.get("/v1/calls/a/b", keys.mine).status == 404
    assert server.get("/v1/admin/calls/a/burn", keys.admin).status == 404
    assert server.get("/v1/ledger?state=odd", keys.mine).status == 400
    assert server.get("/v1/ledger?colour=odd", keys.mine).status == 400
    assert served.post("/v1/undo", keys.mine).status == 400
    assert served.post("/v1/undo", keys.mine, call_id=["a"]).status == 400
    assert served.post("/v1/undo", keys.mine, call_id="a", chain="b").status == 400
