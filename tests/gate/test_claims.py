"""Attack 52: what a client claims beside its key, and a yes held against a no."""

# pyright: reportPrivateUsage=false
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gate.neighbours import two_tenants
from toolgate import Caller
from toolgate.gate import book, registry
from toolgate.gate.decision import Verdict
from toolgate.gate.layers import Cascade, cascade
from toolgate.server import app, calls
from toolgate.server.auth import caller_of
from toolgate.server.calls import read_call, run_call
from toolgate.tenancy.keys import Key, Role
from toolgate.tenancy.layer import Layer

HI = {"text": "hi"}
YES = Verdict(phase="test", allowed=True, rule="off", reason="nobody looked")


@pytest.mark.req("G5")
async def test_52_what_a_client_claims_beside_its_key_is_not_read(tmp_path: Path) -> None:
    async with two_tenants(tmp_path) as (gate, door, keys):
        await gate.tenancy.set_layer("base", Layer(deny=("echo",)), role="clerk")
        await gate.tenancy.set_layer("base", Layer(), role="boss")
        clerk = await gate.tenancy.add_key(
            Role.AGENT, tenant="acme", agent="billing", user="ann", roles=["clerk"]
        )
        claims = tuple(
            (name, value)
            for name, value in (
                *(("x-role", "boss"), ("x-roles", "boss"), ("x-user", "eva")),
                *(("x-tenant", "umbrella"), ("x-agent", "chief"), ("x-persona", "boss")),
                *(("x-toolgate-role", "admin"), ("x-forwarded-user", "eva")),
            )
        )
        body = {"tool": "echo", "args": HI}
        refused = await door.ask("POST", "/v1/call", clerk.secret, body, claims)
        assert refused.status == 404
        for field in ("role", "roles", "user", "persona", "tenant", "agent", "caller"):
            answer = await door.ask("POST", "/v1/call", clerk.secret, body | {field: "boss"})
            assert (answer.status, answer.body["code"]) == (400, "invalid_request")
        # The positive control: the same call with a key that has no such role.
        assert (await door.ask("POST", "/v1/call", keys["acme"], body, claims)).status == 200


# By the field of a caller: what the key says, and what would open more.
CLAIMS: dict[str, tuple[Any, Any]] = {
    "roles": (("clerk",), ("boss",)),
    "persona": ("clerk", "boss"),
    "user": ("eva", "ann"),
    "tenant": ("umbrella", "acme"),
}


@pytest.mark.req("G5")
@pytest.mark.parametrize("where", ["header", "body"])
@pytest.mark.parametrize("field", CLAIMS)
async def test_52_a_door_that_believed_a_claim_would_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, where: str
) -> None:
    """The guard-off control: the same request, before and after."""
    held, claimed = CLAIMS[field]
    text = claimed if isinstance(claimed, str) else claimed[0]
    async with two_tenants(tmp_path) as (gate, door, _keys):
        tenancy = gate.tenancy
        await tenancy.set_layer("base", Layer(deny=("timestamp",)), role="clerk")
        await tenancy.set_layer("base", Layer(), role="boss")
        await tenancy.restrict("clerk", "timestamp", allowed=False)
        stands_for: dict[str, Any] = {"tenant": "acme", "agent": "billing", "user": "ann"}
        key = await tenancy.add_key(Role.AGENT, **stands_for | {field: held})
        headers = ((f"x-{field}", text),) if where == "header" else ()
        body = {"tool": "timestamp"} | ({field: text} if where == "body" else {})
        refused = await door.ask("POST", "/v1/call", key.secret, body, headers)
        assert refused.status == (404 if where == "header" else 400)
        _believe(monkeypatch, field, claimed)
        assert (await door.ask("POST", "/v1/call", key.secret, body, headers)).status == 200


def _believe(monkeypatch: pytest.MonkeyPatch, field: str, claimed: Any) -> None:
    """A door that takes what the request says for who asks, where the request says it."""
    told: dict[str, Any] = {}
    answer = app.App._answer

    async def answered(door: app.App, scope: Any, receive: Any, key: Any) -> Any:
        if any(name == f"x-{field}".encode() for name, _ in scope["headers"]):
            told[field] = claimed
        return await answer(door, scope, receive, key)

    def believing(key: Key) -> Caller:
        return msgspec.structs.replace(caller_of(key), **told)

    def read_claim(body: dict[str, Any], headers: Any) -> Any:
        if body.pop(field, None) is not None:
            told[field] = claimed
        return read_call(body, headers)

    async def run_claim(gate: Any, caller: Caller, asked: Any) -> Any:
        return await run_call(gate, msgspec.structs.replace(caller, **told), asked)

    monkeypatch.setattr(app.App, "_answer", answered)
    monkeypatch.setattr(app, "caller_of", believing)
    monkeypatch.setattr(calls, "read_call", read_claim)
    monkeypatch.setattr(calls, "run_call", run_claim)


def no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(*_: Any) -> Verdict:
        return YES

    monkeypatch.setattr(registry, "judge", judge)


def no_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(*_: Any) -> None:
        return None

    monkeypatch.setattr(Cascade, "refusal", refusal)


@pytest.mark.req("G2", "G5")
@pytest.mark.parametrize("guard_off", [None, no_flags, no_layers])
async def test_52_a_persona_that_may_does_not_outweigh_a_tenant_that_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guard_off: Any
) -> None:
    """With the tenant's flag, or its layer, left unread, the persona's yes would be enough."""
    if guard_off is not None:
        guard_off(monkeypatch)
    async with two_tenants(tmp_path) as (gate, door, _keys):
        await gate.tenancy.set_layer("shut", Layer(deny=("echo",)), tenant="acme")
        await gate.tenancy.relate("umbrella", add=["tool:timestamp#executor@user:ann"])
        for tool in ("timestamp", "echo"):
            await gate.tenancy.restrict("boss", tool, allowed=True)
        told: dict[tuple[str, str], int] = {}
        for tenant in ("acme", "umbrella"):
            whom = {"tenant": tenant, "agent": "billing", "user": "ann", "persona": "boss"}
            key = await gate.tenancy.add_key(Role.AGENT, **whom)
            for tool, args in (("timestamp", {}), ("echo", HI)):
                body = {"tool": tool, "args": args}
                told[tenant, tool] = (await door.ask("POST", "/v1/call", key.secret, body)).status
    assert told == {
        ("umbrella", "timestamp"): 200 if guard_off is no_flags else 404,
        ("acme", "echo"): 200 if guard_off is no_layers else 404,
        # The positive controls: where the other tenant says no, this one does not.
        ("acme", "timestamp"): 200,
        ("umbrella", "echo"): 200,
    }


@pytest.mark.req("G5")
@pytest.mark.parametrize("guarded", [True, False])
async def test_52_a_role_that_is_not_on_record_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    """With roles that nobody looks up, one that nobody has defined would be no hindrance."""

    def lenient(*given: Any) -> Cascade:
        return cascade(*given)._replace(unknown_role="")

    if not guarded:
        monkeypatch.setattr(book, "cascade", lenient)
    async with two_tenants(tmp_path) as (gate, door, _keys):
        await gate.tenancy.set_layer("base", Layer(), role="boss")
        told: dict[str, int] = {}
        for role in ("boss", "stranger"):
            whom = {"tenant": "acme", "agent": "billing", "user": "ann"}
            key = await gate.tenancy.add_key(Role.AGENT, **whom, roles=[role])
            body = {"tool": "echo", "args": HI}
            told[role] = (await door.ask("POST", "/v1/call", key.secret, body)).status
    assert told == {"boss": 200, "stranger": 404 if guarded else 200}
