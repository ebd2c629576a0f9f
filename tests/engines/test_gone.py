"""An engine on a server goes away while every decision is warm: what it decided counts no more."""

import asyncio
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.house import ME
from tests.servers.opa import Opa
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB
from toolgate import Caller, Toolgate, tool, upkeep
from toolgate.errors import CallRefused, PolicyUnavailable, RelationsUnavailable
from toolgate.settings.gate import Cache, Policy, Relations
from toolgate.settings.settings import Settings

VARIABLE = "SPICEDB_KEY"
ANN = Caller(tenant="acme", agent="billing", user="ann")


@tool(effect="pure")
async def look() -> str:
    """Look."""
    return "seen"


@tool(effect="irreversible")
async def pay() -> str:
    """Pay."""
    return "paid"


@pytest.fixture
def own_opa(opa: Opa) -> Generator[Opa]:
    """One that a test may stop; `opa` says whether there is any."""
    with Opa() as server:
        yield server


@pytest.fixture
def own_spicedb(spicedb: SpiceDB) -> Generator[SpiceDB]:
    with SpiceDB() as server:
        yield server


@pytest.fixture(autouse=True)
def nobody_asks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_PROBE", 3_600)


async def answers(gate: Toolgate, caller: Caller = ME) -> bool:
    try:
        return (await gate.call("look", caller=caller)).ok
    except CallRefused:
        return False


@pytest.mark.req("G7", "G8")
async def test_what_opa_decided_is_not_believed_while_it_is_away(
    tmp_path: Path, own_opa: Opa
) -> None:
    settings = Settings(root=tmp_path, policy=Policy(engine="opa", url=own_opa.url))
    async with Toolgate.open(settings) as gate:
        gate.add(look, pay)
        assert await answers(gate)
        assert (await gate.call("pay", caller=ME)).ok
        own_opa.stop()
        with pytest.raises(PolicyUnavailable):
            await gate.call("pay", caller=ME)
        assert await answers(gate), "without a question nobody would notice"
        await gate.gate.probe()
        with pytest.raises(PolicyUnavailable):
            await gate.call("look", caller=ME)
        with pytest.raises(PolicyUnavailable):
            await gate.discover(ME)
        assert [one.engine for one in gate.gate.health() if not one.ok] == ["opa"]
        own_opa.start()
        async with asyncio.timeout(20):
            while not await answers(gate):  # noqa: ASYNC110  it is another process
                await asyncio.sleep(0.05)


@pytest.mark.req("G7", "G8")
async def test_what_spicedb_decided_is_not_believed_while_it_is_away(
    tmp_path: Path, own_spicedb: SpiceDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, VARIABLE, own_spicedb.token)
    relations = Relations(engine="spicedb", url=f"grpc://{own_spicedb.address}", token_env=VARIABLE)
    async with Toolgate.open(Settings(root=tmp_path, relations=relations)) as gate:
        gate.add(look, pay)
        both = ["tool:look#executor@user:ann", "tool:pay#owner@user:ann"]
        await gate.tenancy.relate("acme", add=both)
        assert await answers(gate, ANN)
        assert (await gate.call("pay", caller=ANN)).ok
        own_spicedb.stop()
        with pytest.raises(RelationsUnavailable):
            await gate.call("pay", caller=ANN)
        assert await answers(gate, ANN), "without a question nobody would notice"
        await gate.gate.probe()
        with pytest.raises(RelationsUnavailable):
            await gate.call("look", caller=ANN)
        with pytest.raises(RelationsUnavailable):
            await gate.discover(ANN)
        assert [one.engine for one in gate.gate.health() if not one.ok] == ["spicedb"]


@pytest.mark.req("G7", "G8")
async def test_what_opa_told_another_node_is_not_believed_while_it_is_away(
    tmp_path: Path, own_opa: Opa, redis_server: Redis
) -> None:
    settings = Settings(
        root=tmp_path,
        policy=Policy(engine="opa", url=own_opa.url),
        cache=Cache(url=redis_server.url),
    )
    async with Toolgate.open(settings) as one, Toolgate.open(settings) as other:
        one.add(look)
        other.add(look)
        assert await answers(one)
        own_opa.stop()
        assert await answers(other), "what the first one shared, the other one finds"
        await other.gate.probe()
        assert not await answers(other)
