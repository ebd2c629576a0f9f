"""Attacks of one tenant on another, by their numbers in the list of cases; each with controls."""

# pyright: reportPrivateUsage=false
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.gate.door import Answer, Door
from tests.gate.neighbours import two_tenants
from toolgate import Caller, Toolgate
from toolgate import caller as callers
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.server.admin import keys as admin_keys
from toolgate.server.admin.desk import Desk
from toolgate.server.route import Route
from toolgate.tenancy import relating, rules, tenancy
from toolgate.tenancy.keys import Key, Role

# 56

FOREIGN: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "agents?tenant={tenant}", None),
    ("PUT", "agents/billing", {"tenant": "{tenant}", "mode": "listed"}),
    ("DELETE", "agents/billing?tenant={tenant}", None),
    ("GET", "flags?tenant={tenant}", None),
    ("PUT", "flags", {"tenant": "{tenant}", "tool": "echo", "enabled": False}),
    ("PUT", "activations", {"tenant": "{tenant}", "agent": "billing", "tool": "echo"}),
    ("GET", "layers?tenant={tenant}", None),
    ("PUT", "layers/own", {"tenant": "{tenant}", "deny": ["echo"]}),
    ("DELETE", "layers/own?tenant={tenant}", None),
    ("PUT", "roles/worker", {"tenant": "{tenant}", "permissions": {}}),
    ("GET", "relations?tenant={tenant}", None),
    ("POST", "relations", {"tenant": "{tenant}", "add": ["tool:echo#executor@user:bob"]}),
    ("GET", "audit?tenant={tenant}", None),
    ("DELETE", "keys/{key}", None),
]


class Asking(NamedTuple):
    """One of these requests, about one tenant or another."""

    door: Door
    method: str
    path: str
    body: Mapping[str, Any] | None

    async def of(self, key: str, tenant: str, key_id: str) -> Answer:
        """The answer, without the names that were asked about."""
        sent = self.body and {
            name: tenant if value == "{tenant}" else value for name, value in self.body.items()
        }
        place = self.path.format(tenant=tenant, key=key_id)
        answer = await self.door.ask(self.method, f"/v1/admin/{place}", key, sent)
        hidden = answer.text.replace(tenant, "TENANT").replace(key_id, "KEY")
        return Answer(answer.status, hidden)


@pytest.mark.req("G1")
@pytest.mark.parametrize(("method", "path", "body"), FOREIGN, ids=[one[1] for one in FOREIGN])
async def test_56_what_belongs_to_another_tenant_answers_like_what_is_not_there(
    tmp_path: Path, method: str, path: str, body: dict[str, Any] | None
) -> None:
    async with two_tenants(tmp_path) as (gate, door, keys):
        before = gate.tenancy.world
        ask = Asking(door, method, path, body)
        foreign = await ask.of(keys["umbrella chief"], "acme", keys["acme id"])
        missing = await ask.of(keys["umbrella chief"], "none", "key_000000000000")
        assert foreign == missing
        assert 400 <= foreign.status < 500
        assert gate.tenancy.world is before, "nothing was changed"
        # The controls: one's own, and a key without that bound.
        own = await ask.of(keys["acme chief"], "acme", keys["acme id"])
        assert own.status == 200
        admins = await ask.of(keys["admin"], "umbrella", keys["umbrella id"])
        assert admins.status == 200


@pytest.mark.req("G1")
@pytest.mark.parametrize(("method", "path", "body"), FOREIGN, ids=[one[1] for one in FOREIGN])
async def test_56_a_desk_that_took_any_tenant_would_serve_anothers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: dict[str, Any] | None,
) -> None:
    """The guard-off control."""

    def any_key(desk: Desk) -> list[Key]:
        return [*desk.gate.tenancy.world.keys.values()]

    monkeypatch.setattr(Desk, "tenant", property(lambda desk: desk.asked))
    monkeypatch.setattr(admin_keys, "_within", any_key)
    async with two_tenants(tmp_path) as (gate, door, keys):
        before = gate.tenancy.world
        ask = Asking(door, method, path, body)
        foreign = await ask.of(keys["umbrella chief"], "acme", keys["acme id"])
        assert foreign.status == 200
        if method == "GET":
            assert foreign == await ask.of(keys["acme chief"], "acme", keys["acme id"])
        assert (gate.tenancy.world is not before) is (method != "GET")


@pytest.mark.req("G1")
async def test_56_what_a_tenant_looks_at_holds_nothing_of_another(tmp_path: Path) -> None:
    async with two_tenants(tmp_path) as (_gate, door, keys):
        for place in ("tenants", "agents", "flags", "keys", "layers", "relations", "audit"):
            seen = await door.ask("GET", f"/v1/admin/{place}", keys["umbrella chief"])
            assert seen.status == 200, place
            assert "acme" not in seen.text, place
            assert "timestamp#executor" not in seen.text
            # The positive control.
            of = "" if place == "tenants" else "?tenant=acme"
            own = await door.ask("GET", f"/v1/admin/{place}{of}", keys["admin"])
            assert own.status == 200, place
            assert any(name in own.text for name in ("acme", "billing", "timestamp")), place


@pytest.mark.req("G1")
async def test_56_a_list_that_was_not_kept_to_the_tenant_would_hold_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    monkeypatch.setattr(Desk, "has_all", True)
    async with two_tenants(tmp_path) as (_gate, door, keys):
        for place in ("tenants", "flags", "keys", "layers", "audit"):
            seen = await door.ask("GET", f"/v1/admin/{place}", keys["umbrella chief"])
            assert seen.status == 200, place
            assert "acme" in seen.text, place
        for place in ("agents", "relations"):
            where = f"/v1/admin/{place}?tenant=acme"
            seen = await door.ask("GET", where, keys["umbrella chief"])
            assert seen.text == (await door.ask("GET", where, keys["admin"])).text


def _everybody(_route: Route, _key: Key) -> bool:
    return True


@pytest.mark.req("G1")
@pytest.mark.parametrize("guarded", [True, False])
async def test_56_an_agents_key_administers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    """With its role left unread, it would run its tenant."""
    if not guarded:
        monkeypatch.setattr(Route, "lets_in", _everybody)
    for number, (method, path, body) in enumerate(FOREIGN):
        root = tmp_path / str(number)
        root.mkdir()
        async with two_tenants(root) as (_gate, door, keys):
            ask = Asking(door, method, path, body)
            answer = await ask.of(keys["acme"], "acme", keys["acme id"])
            assert answer.status == (403 if guarded else 200), path


# 61

LOOK_ALIKES = ["Acme", "ACME", " acme", "acme ", "acme\u200b", "\u0430cme", "acmé", "ac\u00adme"]


@pytest.mark.req("G1")
@pytest.mark.parametrize("name", [*LOOK_ALIKES, "a/b", "a:b", "", "acme\n", "\uff41cme", "-acme"])
async def test_61_a_tenant_that_could_be_taken_for_another_cannot_be_made(
    gate: Toolgate, name: str
) -> None:
    await gate.tenancy.add_tenant("acme")
    tenancy = gate.tenancy
    for make in (
        tenancy.add_tenant(name),
        tenancy.set_agent(name, "billing"),
        tenancy.set_tenant_tool(name, "echo", enabled=False),
        tenancy.relate(name, add=["tool:echo#executor@user:ann"]),
        tenancy.add_key(Role.ADMIN, tenant=name),
    ):
        with pytest.raises(InvalidRequest, match="cannot name a tenant"):
            await make
    with pytest.raises(InvalidRequest, match="cannot name a tenant"):
        Caller(tenant=name)
    assert [*gate.tenancy.world.tenants] == ["acme"]


@pytest.mark.req("G1")
@pytest.mark.parametrize("name", LOOK_ALIKES)
async def test_61_a_look_alike_that_could_be_made_would_slip_past_what_was_said_of_the_other(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The guard-off control."""

    def anything(_kind: str, given: str) -> str:
        return given

    for user in (tenancy, rules, relating, callers):
        monkeypatch.setattr(user, "plain", anything)
    for tenant in ("acme", name):
        await gate.tenancy.set_agent(tenant, "billing")
    await gate.tenancy.set_tenant_tool("acme", "echo", enabled=False)
    fresh = await gate.tenancy.add_key(Role.AGENT, tenant=name, agent="billing")
    assert {*gate.tenancy.world.tenants} == {"acme", name}
    listed = (await Door(gate).ask("GET", "/v1/tools", fresh.secret)).body["tools"]
    assert "echo" in {tool["name"] for tool in listed}
    assert (await gate.call("echo", {"text": "hi"}, caller=Caller(tenant=name))).ok
    with pytest.raises(ToolNotFound):
        await gate.call("echo", {"text": "hi"}, caller=Caller(tenant="acme"))
