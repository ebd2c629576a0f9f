"""SpiceDB down, slow, or cut off in the middle: nobody may, within the deadline, and it heals."""

import asyncio
from collections.abc import AsyncGenerator
from uuid import uuid4

import pytest

from tests.engines.relation_engines import PATIENT, opened, parsed
from tests.engines.relation_proxy import LOOPBACK, Proxy, proxied
from tests.servers.spicedb import SpiceDB as Server
from toolgate.caller import Caller
from toolgate.engines.spicedb import SpiceDB
from toolgate.errors import RelationsUnavailable

pytestmark = pytest.mark.req("G7")
TOOLS = ["pay", *(f"other{at}" for at in range(200))]


@pytest.fixture
def ann() -> Caller:
    return Caller(tenant=f"t{uuid4().hex}", user="ann")


@pytest.fixture
async def proxy(spicedb: Server, ann: Caller) -> AsyncGenerator[Proxy]:
    """To a SpiceDB in which ann may pay."""
    async with opened(spicedb) as direct, proxied(spicedb.port) as made:
        await direct.write(ann.tenant, parsed("tool:pay#owner@user:ann"), [])
        yield made


def through(proxy: Proxy, server: Server, seconds: float) -> SpiceDB:
    return SpiceDB(f"grpc://{LOOPBACK}:{proxy.port}", server.token, seconds)


async def heals(engine: SpiceDB, caller: Caller) -> None:
    """The connection is made anew after a moment; every question meanwhile is refused."""
    async with asyncio.timeout(PATIENT):
        while True:
            try:
                assert await engine.executable(caller, TOOLS) == {"pay"}
            except RelationsUnavailable:
                await asyncio.sleep(0)
            else:
                return


async def test_a_silent_server_is_a_no_within_the_deadline(
    spicedb: Server, proxy: Proxy, ann: Caller
) -> None:
    engine = through(proxy, spicedb, 1.0)
    try:
        await heals(engine, ann)
        proxy.silent = True
        async with asyncio.timeout(PATIENT):
            with pytest.raises(RelationsUnavailable, match="timeout") as refused:
                await engine.executable(ann, TOOLS)
        assert spicedb.token not in str(refused.value)
        assert refused.value.__cause__ is None
        proxy.silent = False
        # What was held back is lost, and with it the connection.
        await proxy.end()
        await heals(engine, ann)
    finally:
        await engine.close()


async def test_an_answer_that_is_cut_is_a_no(spicedb: Server, proxy: Proxy, ann: Caller) -> None:
    engine = through(proxy, spicedb, PATIENT)
    try:
        assert await engine.executable(ann, TOOLS) == {"pay"}
        proxy.cut = True
        for _ in range(5):
            with pytest.raises(RelationsUnavailable) as refused:
                await engine.executable(ann, TOOLS)
            assert spicedb.token not in str(refused.value)
        proxy.cut = False
        await heals(engine, ann)
    finally:
        await engine.close()


async def test_a_server_that_was_down_is_found_again(spicedb: Server, ann: Caller) -> None:
    with type(spicedb)() as server:
        server.stop()
        engine = SpiceDB(f"grpc://{server.address}", server.token, PATIENT)
        try:
            await engine.start()
            assert not engine.health().ok
            with pytest.raises(RelationsUnavailable, match=r"\[relations\] url"):
                await engine.executable(ann, TOOLS)
            server.start()
            async with opened(server) as direct:
                await direct.write(ann.tenant, parsed("tool:pay#owner@user:ann"), [])
            # Nobody starts it again: the first question that gets through does.
            await heals(engine, ann)
            assert engine.health().ok
            server.stop()
            with pytest.raises(RelationsUnavailable):
                await engine.executable(ann, TOOLS)
            with pytest.raises(RelationsUnavailable):
                await engine.write(ann.tenant, parsed("tool:pay#owner@user:bob"), [])
        finally:
            await engine.close()


async def test_a_server_that_is_down_is_soon_not_waited_for(
    spicedb: Server, proxy: Proxy, ann: Caller
) -> None:
    engine = through(proxy, spicedb, 0.2)
    try:
        await heals(engine, ann)
        proxy.silent = True
        said: list[str] = []
        for _ in range(30):
            with pytest.raises(RelationsUnavailable) as refused:
                await engine.executable(ann, TOOLS)
            said.append(refused.value.message)
        assert "timeout" in said[0]
        assert any("left alone" in message for message in said)
        assert not engine.health().ok
        proxy.silent = False
        await proxy.end()
        await heals(engine, ann)
        assert engine.health().ok
    finally:
        await engine.close()


async def test_a_wrong_key_is_a_no_that_does_not_show_it(spicedb: Server, ann: Caller) -> None:
    engine = SpiceDB(f"grpc://{spicedb.address}", "wrong-key-of-ours", PATIENT)
    try:
        with pytest.raises(RelationsUnavailable, match="token_env") as refused:
            await engine.executable(ann, ["pay"])
        assert "wrong-key-of-ours" not in repr(refused.value)
    finally:
        await engine.close()


async def test_who_still_asks_a_closed_engine_hears_no(
    spicedb: Server, proxy: Proxy, ann: Caller
) -> None:
    engine = through(proxy, spicedb, PATIENT)
    assert await engine.executable(ann, ["pay"]) == {"pay"}
    proxy.silent = True
    waiting = asyncio.ensure_future(engine.executable(ann, ["pay"]))
    await asyncio.sleep(0)
    await engine.close()
    with pytest.raises(RelationsUnavailable):
        await waiting
    with pytest.raises(RelationsUnavailable):
        await engine.executable(ann, ["pay"])


async def test_who_is_cancelled_stays_cancelled(spicedb: Server, proxy: Proxy, ann: Caller) -> None:
    engine = through(proxy, spicedb, PATIENT)
    try:
        assert await engine.executable(ann, ["pay"]) == {"pay"}
        proxy.silent = True
        waiting = asyncio.ensure_future(engine.executable(ann, ["pay"]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    finally:
        await engine.close()
