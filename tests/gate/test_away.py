"""An engine that is away, silent or cut off is a no: to a list, to a call, to an explanation."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.engines.relation_engines import PATIENT
from tests.engines.relation_proxy import proxied
from tests.gate.random_worlds import FUNCTIONS
from tests.house import HERE
from tests.servers.opa import Opa as OpaServer
from tests.servers.process import free_port
from tests.servers.spicedb import SpiceDB as SpiceServer
from toolgate import Caller
from toolgate.engines.modules import build
from toolgate.engines.opa import Opa
from toolgate.engines.rego import Rego
from toolgate.engines.spicedb import SpiceDB
from toolgate.errors import CallRefused, PolicyUnavailable, RelationsUnavailable
from toolgate.gate.asking import Engines, Rules
from toolgate.gate.relations import Relations
from toolgate.net.client import HttpClient
from toolgate.runtime import Runtime
from toolgate.testing.decisions import MemoryDecisions
from toolgate.testing.house import in_memory

ANN = Caller(tenant="acme", agent="billing", user="ann")
KINDS = {"policy": PolicyUnavailable, "relations": RelationsUnavailable}


@asynccontextmanager
async def opa_at(port: int, *, seconds: float = 1.0) -> AsyncGenerator[Opa]:
    client = HttpClient(HERE, timeout=seconds)
    engine = Opa(client, build({}, {}), f"http://127.0.0.1:{port}", timeout=seconds)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()
        await client.close()


@asynccontextmanager
async def spicedb_at(port: int, token: str, *, seconds: float = 1.0) -> AsyncGenerator[SpiceDB]:
    engine = SpiceDB(f"grpc://127.0.0.1:{port}", token, seconds)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def without(phase: str, *, observe: bool = False) -> AsyncGenerator[Runtime]:
    """A house whose engine for this phase is not there at all."""
    rules = Rules(observe=observe)
    if phase == "policy":
        async with (
            opa_at(free_port()) as policy,
            in_memory(*FUNCTIONS, engines=Engines(policy), rules=rules) as house,
        ):
            yield house
        return
    async with (
        spicedb_at(free_port(), "none") as relations,
        in_memory(
            *FUNCTIONS, engines=Engines(Rego(build({}, {})), relations), rules=rules
        ) as house,
    ):
        yield house


@pytest.mark.req("G7")
@pytest.mark.parametrize("tool", ["plain", "pay"])
@pytest.mark.parametrize("phase", ["policy", "relations"])
async def test_47_without_an_engine_nothing_is_listed_called_or_added(
    phase: str, tool: str
) -> None:
    kind = KINDS[phase]
    async with without(phase) as house:
        for ask in (
            house.discover(ANN),
            house.call(tool, caller=ANN),
            house.gate.view(ANN, tool),
            house.gate.unavailable(ANN),
            house.toolbox(ANN).refresh(),
        ):
            with pytest.raises(kind) as refused:
                await ask
            assert refused.value.retryable
            assert refused.value.code == f"{phase}_unavailable"
        assert await house.journal.entries("acme") == []
        [broken] = [health for health in house.gate.health() if not health.ok]
        assert broken.engine == {"policy": "opa", "relations": "spicedb"}[phase]


@pytest.mark.req("G6", "G7")
@pytest.mark.parametrize("phase", ["policy", "relations"])
async def test_47_an_explanation_says_that_nobody_can_tell(phase: str) -> None:
    async with without(phase) as house:
        said = await house.explain("pay", caller=ANN, args={})
        assert not said.allowed
        assert (said.deciding.phase, said.deciding.rule) == (phase, "unavailable")
        assert said.deciding.remedy
        others = [one for one in said.verdicts if one is not said.deciding]
        assert all(one.allowed for one in others), "the other phases are told all the same"


@pytest.mark.req("G7")
async def test_47_without_the_policy_nobody_adds_a_tool() -> None:
    async with without("policy") as house:
        with pytest.raises(PolicyUnavailable):
            await house.gate.add(ANN, house.catalog.current.specs["plain"])


@pytest.mark.req("G7")
async def test_47_what_earlier_phases_refuse_needs_no_engine() -> None:
    async with without("policy") as house:
        for name in ("plain", "query", "fetch", "pay", "reserved", "chain_only"):
            await house.tenancy.set_tool(name, enabled=False)
        assert await house.discover(ANN) == ()


@pytest.mark.req("G3", "G7")
async def test_observing_passes_what_the_policy_cannot_say_and_relations_not() -> None:
    async with without("policy", observe=True) as house:
        assert (await house.call("pay", caller=ANN)).ok
        assert "pay" in {spec.name for spec in await house.discover(ANN)}
        said = await house.explain("pay", caller=ANN)
        assert (said.allowed, said.observed, said.deciding.rule) == (True, True, "unavailable")
    async with without("relations", observe=True) as house:
        with pytest.raises(RelationsUnavailable):
            await house.call("pay", caller=ANN)


class Yes:
    """The guard, taken out: an engine that takes silence for a yes."""

    external = True

    def __init__(self, engine: Relations) -> None:
        self._engine = engine
        self.health = engine.health

    async def executable(
        self, caller: Caller, tools: list[str], *, token: str = "", fresh: bool = False
    ) -> frozenset[str]:
        try:
            return await self._engine.executable(caller, tools, token=token, fresh=fresh)
        except CallRefused:
            return frozenset(tools)


@pytest.mark.req("G7")
async def test_47_an_engine_that_took_silence_for_a_yes_would_let_it_run() -> None:
    """The guard-off control."""
    async with spicedb_at(free_port(), "none") as relations:
        yes: Relations = Yes(relations)  # pyright: ignore[reportAssignmentType]
        async with in_memory(*FUNCTIONS, engines=Engines(None, yes)) as house:
            assert (await house.call("pay", caller=ANN)).ok


@pytest.mark.req("G7", "G8")
@pytest.mark.parametrize("how", ["silent", "cut"])
async def test_47_a_server_that_goes_away_stops_side_effects_on_a_warm_cache(
    spicedb: SpiceServer, how: str
) -> None:
    async with (
        proxied(spicedb.port) as proxy,
        spicedb_at(proxy.port, spicedb.token, seconds=PATIENT) as relations,
        in_memory(*FUNCTIONS, engines=Engines(None, relations), relations=relations) as house,
    ):
        tenant = f"away-{how}"
        ann = Caller(tenant=tenant, user="ann")
        await house.tenancy.relate(
            tenant, add=["tool:pay#executor@user:ann", "tool:plain#executor@user:ann"]
        )
        for tool in ("pay", "plain"):
            assert (await house.call(tool, caller=ann)).ok
        relations._channel.timeout = 0.5  # pyright: ignore[reportPrivateUsage]
        setattr(proxy, how, True)
        with pytest.raises(RelationsUnavailable):
            await house.call("pay", caller=ann)
        assert (await house.call("plain", caller=ann)).ok, "decided before, and changes nothing"
        with pytest.raises(RelationsUnavailable):
            await house.call("pay", caller=ann)
        # What was never decided is not guessed.
        with pytest.raises(RelationsUnavailable):
            await house.call("query", caller=ann)


@pytest.mark.req("G7", "G8")
async def test_48_what_another_program_takes_from_spicedb_stops_the_next_side_effect(
    spicedb: SpiceServer,
) -> None:
    async with (
        spicedb_at(spicedb.port, spicedb.token, seconds=PATIENT) as relations,
        spicedb_at(spicedb.port, spicedb.token, seconds=PATIENT) as theirs,
        in_memory(*FUNCTIONS, engines=Engines(None, relations), relations=relations) as house,
    ):
        ann = Caller(tenant="revoked-elsewhere", user="ann")
        await house.tenancy.relate(ann.tenant, add=["tool:pay#executor@user:ann"])
        assert (await house.call("pay", caller=ann)).ok
        [relation] = await theirs.read(ann.tenant, limit=10)
        await theirs.write(ann.tenant, [], [relation])
        refused = 0
        for _ in range(50):
            try:
                await house.call("pay", caller=ann)
            except CallRefused:
                refused += 1
        assert refused == 50, "no revision of ours told of it"


@pytest.mark.req("G7")
async def test_an_engine_that_is_back_decides_again(opa: OpaServer) -> None:
    decisions = MemoryDecisions()
    async with (
        proxied(opa.port) as proxy,
        opa_at(proxy.port, seconds=PATIENT) as policy,
        in_memory(*FUNCTIONS, engines=Engines(policy), decisions=decisions) as house,
    ):
        policy._server._seconds = 0.5  # pyright: ignore[reportPrivateUsage]
        proxy.silent = True
        with pytest.raises(PolicyUnavailable):
            await house.call("pay", caller=ANN)
        assert decisions.made == {}, "nothing was decided"
        proxy.silent = False
        policy._server._seconds = PATIENT  # pyright: ignore[reportPrivateUsage]
        assert (await house.call("pay", caller=ANN)).ok
        assert all(health.ok for health in house.gate.health())
