"""Attacks on the gate, by their numbers in the list of cases; each with a control that shows it."""

# pyright: reportPrivateUsage=false
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from tests.gate.door import Answer, Door
from tests.gate.random_worlds import module, opened
from toolgate import Caller, Toolgate
from toolgate.call import Context, Grant, Turn
from toolgate.cli.main import app
from toolgate.clock import utc_now
from toolgate.errors import InvalidArguments, InvalidRequest, ToolNotFound
from toolgate.executor.executor import Executor
from toolgate.gate.book import Book, Books
from toolgate.gate.gate import Gate
from toolgate.gate.policy import Health
from toolgate.gate.shared import permission_key
from toolgate.settings import Relations, Settings
from toolgate.tenancy.keys import Role
from toolgate.tenancy.layer import Layer

HI = {"text": "hi"}


@asynccontextmanager
async def two_tenants(root: Path) -> AsyncGenerator[tuple[Toolgate, Door, dict[str, str]]]:
    """Two tenants with the same names in both; only acme has `timestamp`, and related users."""
    settings = Settings(root=root, relations=Relations(engine="store"))
    async with Toolgate.open(settings) as gate:
        tenancy = gate.tenancy
        keys: dict[str, str] = {}
        for tenant in ("acme", "umbrella"):
            await tenancy.set_agent(tenant, "billing")
            await tenancy.relate(tenant, add=["tool:echo#executor@user:ann"])
            key = await tenancy.add_key(Role.AGENT, tenant=tenant, agent="billing", user="ann")
            keys[tenant], keys[f"{tenant} id"] = key.secret, key.key.id
            chief = await tenancy.add_key(Role.TENANT_ADMIN, tenant=tenant)
            keys[f"{tenant} chief"] = chief.secret
        await tenancy.set_tenant_tool("umbrella", "timestamp", enabled=False)
        await tenancy.set_tenant_tool("acme", "timestamp", enabled=True)
        await tenancy.relate("acme", add=["tool:timestamp#executor@user:ann"])
        await tenancy.set_layer("own", Layer(deny=("calculate",)), tenant="acme")
        keys["admin"] = (await tenancy.add_key(Role.ADMIN, tenant="acme")).secret
        yield gate, Door(gate), keys


# 51


@pytest.mark.req("G1", "G8")
async def test_51_the_same_user_in_two_tenants_is_decided_and_cached_apart() -> None:
    async with opened() as house:
        await house.tenancy.relate("acme", add=["tool:pay#executor@user:ann"])
        ours, theirs = (
            Caller(tenant=tenant, agent="billing", user="ann") for tenant in ("acme", "umbrella")
        )
        for _ in range(3):
            assert (await house.call("pay", caller=ours)).ok
            with pytest.raises(ToolNotFound):
                await house.call("pay", caller=theirs)
            assert [spec.name for spec in await house.discover(ours)] == ["pay"]
            assert await house.discover(theirs) == ()


@pytest.mark.req("G1", "G8")
async def test_51_a_cache_that_forgot_the_tenant_would_let_the_other_one_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard-off control."""
    original = Books.of

    def forgetful(books: Books, caller: Caller, *rest: Any) -> Book:
        return original(books, msgspec.structs.replace(caller, tenant="acme"), *rest)

    monkeypatch.setattr(Books, "of", forgetful)
    async with opened() as house:
        await house.tenancy.relate("acme", add=["tool:pay#executor@user:ann"])
        await house.call("pay", caller=Caller(tenant="acme", agent="billing", user="ann"))
        theirs = Caller(tenant="umbrella", agent="billing", user="ann")
        assert (await house.call("pay", caller=theirs)).ok


APART = [
    (Caller(tenant="a", agent="b_c"), Caller(tenant="a_b", agent="c")),
    (Caller(tenant="a", user="b"), Caller(tenant="a", persona="b")),
    (Caller(tenant="a", user="b", persona=""), Caller(tenant="a", user="", persona="b")),
    (Caller(tenant="a", persona="b:c", user="d"), Caller(tenant="a", persona="b", user="c:d")),
    (Caller(tenant="a", roles=("b", "c")), Caller(tenant="a", roles=("b,c",))),
    (Caller(tenant="a", roles=("b", "c")), Caller(tenant="a", roles=("b:c",))),
    (Caller(tenant="a", roles=("",)), Caller(tenant="a")),
    (Caller(tenant="a", session="s"), Caller(tenant="a", user="s")),
    *(
        (
            Caller(tenant="a", context=Context(facts=(("x", one),))),
            Caller(tenant="a", context=Context(facts=(("x", other),))),
        )
        for one, other in ((1, True), (1, 1.0), (True, 1.0), (0, False), (1, "1"), (0.0, False))
    ),
    (
        Caller(tenant="a", context=Context(allow=())),
        Caller(tenant="a", context=Context(allow=None)),
    ),
    (
        Caller(tenant="a", context=Context(allow=("x",))),
        Caller(tenant="a", context=Context(deny=("x",))),
    ),
    (
        Caller(tenant="a", agent="b").delegate("c"),
        Caller(tenant="a", agent="c"),
    ),
    (
        Caller(tenant="a", agent="b").delegate("c", allow=["x"]),
        Caller(tenant="a", agent="b").delegate("c", deny=["x"]),
    ),
]


@pytest.mark.req("G1", "G8")
@pytest.mark.parametrize(("one", "other"), APART)
async def test_callers_that_could_be_mistaken_for_each_other_have_books_of_their_own(
    one: Caller, other: Caller
) -> None:
    assert one != other
    async with opened(relations=False) as house:
        gate = house.gate
        assert gate._book(one) is not gate._book(other)
        assert gate._book(one) is gate._book(one)


@pytest.mark.req("G8")
@pytest.mark.parametrize(("one", "other"), APART)
async def test_callers_that_could_be_mistaken_for_each_other_share_no_key_between_nodes(
    one: Caller, other: Caller
) -> None:
    keys: list[set[str]] = []
    for caller in (one, other, one):
        shared = Kept()
        async with opened(relations=False, shared=shared) as house:
            await house.discover(caller)
        keys.append({*shared.values})
    assert keys[0] == keys[2]
    tasks = [(caller.context.allow, caller.context.deny) for caller in (one, other)]
    # What a task or a delegation leaves out is not asked about at all.
    if tasks[0] == tasks[1] and not one.delegation:
        assert keys[0]
        assert keys[0].isdisjoint(keys[1])


class Kept:
    """What a node would share."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        assert ttl_s > 0
        self.values[key] = value

    async def announce(self, revision: int) -> None:
        """Nobody listens."""

    def subscribe(self, on_change: Callable[[int], None]) -> None:
        """Nobody speaks."""

    def health(self) -> Health:
        return Health(engine="kept")


@pytest.mark.req("G8")
def test_no_persona_and_tenant_share_a_key_between_nodes() -> None:
    parts = ["a", "b", "a:b", ":", "", "a%3Ab", "%", "=", "A", "é", "a" * 65, "a" * 66]
    keys = {permission_key(tenant, persona, "q") for tenant in parts for persona in parts}
    assert len(keys) == len(parts) ** 2


@pytest.mark.req("G3")
async def test_a_fact_that_is_true_does_not_stand_for_one_that_is_one() -> None:
    rule = 'package toolgate\n\ndeny contains "a drill" if input.context.facts.drill == true\n'
    async with opened(relations=False) as house:
        await house.tenancy.set_policy_module("drill", rule)
        drill, plain = (
            Caller(tenant="acme", context=Context(facts=(("drill", value),))) for value in (True, 1)
        )
        for _ in range(2):
            assert await house.discover(drill) == ()
            assert len(await house.discover(plain)) == 4
            assert (await house.call("pay", caller=plain)).ok
            with pytest.raises(ToolNotFound):
                await house.call("pay", caller=drill)


@pytest.mark.req("G1")
@pytest.mark.parametrize(
    "odd",
    [
        {"user": "\ud800"},
        {"session": "\udcff"},
        {"persona": "\ud800"},
        {"roles": ("\ud800",)},
        {"context": Context(facts=(("n", 2**70),))},
        {"context": Context(facts=(("\ud800", 1),))},
    ],
)
async def test_a_caller_that_no_engine_can_be_told_of_is_refused_in_words(
    odd: dict[str, Any],
) -> None:
    async with opened(relations=False) as house:
        caller = Caller(tenant="acme", **odd)
        for ask in (
            house.call("pay", caller=caller),
            house.discover(caller),
            house.explain("pay", caller=caller),
            house.gate.view(caller, "plain"),
            house.gate.unavailable(caller),
        ):
            with pytest.raises(InvalidRequest, match="put into words"):
                await ask
        fine = Caller(tenant="acme", user="Žofie \U0001f642")
        assert (await house.call("pay", caller=fine)).ok


@pytest.mark.parametrize(
    "facts", [(("n", float("nan")),), (("n", float("inf")),), [("n", 1)], (["n", 1],), (("n",),)]
)
def test_a_fact_that_no_policy_can_compare_is_refused(facts: Any) -> None:
    with pytest.raises(InvalidRequest, match="'facts' of a context"):
        Context(facts=facts)


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    "odd",
    [{1, 2}, object(), 2**70, "\ud800", utc_now(), b"x", {1: "one"}, (Context(),)],
    ids=["set", "object", "large", "half", "time", "bytes", "key", "struct"],
)
async def test_an_argument_that_no_policy_can_be_told_is_refused_and_not_guessed(odd: Any) -> None:
    async with opened(relations=False) as house:
        await house.tenancy.set_policy_module("args", module("args"))
        caller = Caller(tenant="acme")
        for args in ({"amount": odd}, {"amount": [odd]}):
            with pytest.raises(InvalidArguments, match="not JSON"):
                await house.call("pay", args, caller=caller)
            with pytest.raises(InvalidArguments, match="not JSON"):
                await house.explain("pay", args=args, caller=caller)
        # The positive control.
        assert (await house.explain("pay", args={"amount": 1}, caller=caller)).allowed


# 52


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


# 54


@pytest.mark.req("G1", "C4")
async def test_54_a_tool_that_is_hidden_and_called_by_name_is_as_missing_as_one_that_is(
    tmp_path: Path,
) -> None:
    async with two_tenants(tmp_path) as (_gate, door, keys):
        for key, hidden in ((keys["umbrella"], True), (keys["acme"], False)):
            listed = await door.ask("GET", "/v1/tools", key)
            names = {tool["name"] for tool in listed.body["tools"]}
            assert ("timestamp" in names) is not hidden
            hers, nobodys = [
                await door.ask("POST", "/v1/call", key, {"tool": name, "args": {}})
                for name in ("timestamp", "no_tool_")
            ]
            alike = hers.text.replace("timestamp", "X") == nobodys.text.replace("no_tool_", "X")
            assert (hers.status == nobodys.status, alike) == (hidden, hidden)


# 55


class Watched:
    """What the gate granted and what the executor was handed, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[tuple[str, Grant]] = []
        self._inside = False
        decide, known, run = Gate.decide, Gate.known, Executor.run

        async def decided(gate: Gate, *given: Any) -> Grant:
            self._inside = True
            try:
                grant = await decide(gate, *given)
            finally:
                self._inside = False
            self.log.append(("granted", grant))
            return grant

        def remembered(gate: Gate, *given: Any) -> Grant | None:
            grant = known(gate, *given)
            if grant is not None and not self._inside:
                self.log.append(("granted", grant))
            return grant

        async def handed(executor: Executor, grant: Grant, args: Any, turn: Turn | None) -> Any:
            self.log.append(("ran", grant))
            return await run(executor, grant, args, turn)

        monkeypatch.setattr(Gate, "decide", decided)
        monkeypatch.setattr(Gate, "known", remembered)
        monkeypatch.setattr(Executor, "run", handed)

    def once(self) -> None:
        """Exactly one grant, and what ran had that very grant."""
        [(first, grant), (second, handed)] = self.log
        assert (first, second) == ("granted", "ran")
        assert handed is grant
        self.log.clear()


@pytest.mark.req("G1", "X1")
async def test_55_every_entry_passes_the_gate_exactly_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    async with two_tenants(tmp_path) as (gate, door, keys):
        ann = Caller(tenant="acme", agent="billing", user="ann")
        for _cold_then_warm in range(2):
            await gate.call("echo", HI, caller=ann)
            watched.once()
            await gate.toolbox(ann).call("echo", HI)
            watched.once()
            answer = await door.ask("POST", "/v1/call", keys["acme"], {"tool": "echo", "args": HI})
            assert answer.status == 200
            watched.once()
        for method, path in (("GET", "/v1/tools"), ("GET", "/v1/tools/echo")):
            assert (await door.ask(method, path, keys["acme"])).status == 200
        assert watched.log == [], "what only looks hands nothing to the executor"


@pytest.mark.req("G1", "X1")
def test_55_the_command_line_passes_the_gate_exactly_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    (tmp_path / "toolgate.toml").touch()
    given = ["echo", "--args", '{"text": "hi"}', "--config", str(tmp_path / "toolgate.toml")]
    assert CliRunner().invoke(app, ["call", *given]).exit_code == 0
    watched.once()
    hidden = ["no_tool", *given[1:]]
    assert CliRunner().invoke(app, ["call", *hidden]).exit_code == 1
    assert watched.log == []


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


@pytest.mark.req("G1")
@pytest.mark.parametrize(("method", "path", "body"), FOREIGN, ids=[one[1] for one in FOREIGN])
async def test_56_what_belongs_to_another_tenant_answers_like_what_is_not_there(
    tmp_path: Path, method: str, path: str, body: dict[str, Any] | None
) -> None:
    async with two_tenants(tmp_path) as (gate, door, keys):
        before = gate.tenancy.world

        async def ask(key: str, tenant: str, key_id: str) -> Answer:
            sent = body and {
                name: tenant if value == "{tenant}" else value for name, value in body.items()
            }
            place = path.format(tenant=tenant, key=key_id)
            answer = await door.ask(method, f"/v1/admin/{place}", key, sent)
            hidden = answer.text.replace(tenant, "TENANT").replace(key_id, "KEY")
            return Answer(answer.status, hidden)

        foreign = await ask(keys["umbrella chief"], "acme", keys["acme id"])
        missing = await ask(keys["umbrella chief"], "none", "key_000000000000")
        assert foreign == missing
        assert 400 <= foreign.status < 500
        assert gate.tenancy.world is before, "nothing was changed"
        # The controls: one's own, and a key without that bound.
        own = await ask(keys["acme chief"], "acme", keys["acme id"])
        assert own.status == 200
        admins = await ask(keys["admin"], "umbrella", keys["umbrella id"])
        assert admins.status == 200


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
async def test_56_an_agents_key_administers_nothing(tmp_path: Path) -> None:
    async with two_tenants(tmp_path) as (_gate, door, keys):
        for method, path, body in FOREIGN:
            place = path.format(tenant="acme", key=keys["acme id"])
            answer = await door.ask(method, f"/v1/admin/{place}", keys["acme"], body)
            assert answer.status == 403, path


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
