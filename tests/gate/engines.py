"""The engines that the cases are decided by: Rego here or on OPA, relations here or in SpiceDB."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec
import pytest

from tests.engines.relation_engines import PATIENT, SPICEDB, Engine, open_engine
from tests.house import HERE
from tests.servers.opa import Opa as OpaServer
from tests.store.places import FILE
from toolgate.caller import Caller
from toolgate.engines.bundle import Bundle
from toolgate.engines.modules import build
from toolgate.engines.opa import Opa
from toolgate.engines.rego import Rego
from toolgate.gate.policy import Health, Policy
from toolgate.net.client import HttpClient
from toolgate.tenancy.relation import Relation

REGO, OPA = "rego", "opa"
OFF, STORE = "off", "store"
POLICIES = (REGO, OPA)
RELATIONS = (STORE, SPICEDB)


class Brought(Protocol):
    """An engine with this policy in it."""

    async def __call__(self, bundle: Bundle) -> Policy: ...


class Here:
    async def __call__(self, bundle: Bundle) -> Policy:
        return Rego(bundle)


class There:
    """One server: a policy is sent when it is another one."""

    def __init__(self, server: Opa) -> None:
        self._server = server

    async def __call__(self, bundle: Bundle) -> Policy:
        if bundle.revision != self._server.revision:
            await self._server.swap(bundle)
        assert self._server.health().ok, self._server.health()
        return self._server


class Tenants:
    """Relations under tenants of their own: one database, and one server, serve every case."""

    def __init__(self, engine: Engine, suffix: str) -> None:
        self._engine = engine
        self._suffix = suffix
        self.external = engine.relations.external

    async def executable(
        self, caller: Caller, tools: Sequence[str], *, token: str = "", fresh: bool = False
    ) -> frozenset[str]:
        tenant = caller.tenant + self._suffix
        apart = msgspec.structs.replace(caller, tenant=tenant)
        return await self._engine.relations.executable(apart, tools, token=token, fresh=fresh)

    def health(self) -> Health:
        return self._engine.relations.health()

    async def write(self, tenant: str, add: Sequence[Relation], remove: Sequence[Relation]) -> str:
        return await self._engine.put(tenant + self._suffix, add, remove)

    async def read(self, tenant: str, *, limit: int) -> Sequence[Relation]:
        raise NotImplementedError


Apart = Callable[[str], Tenants]


@asynccontextmanager
async def open_policy(kind: str, request: pytest.FixtureRequest) -> AsyncGenerator[Brought]:
    """Rego in this process, or a real OPA."""
    if kind == REGO:
        yield Here()
        return
    server: OpaServer = request.getfixturevalue("opa")
    async with AsyncExitStack() as stack:
        client = HttpClient(HERE, timeout=PATIENT)
        stack.push_async_callback(client.close)
        opa = Opa(client, build({}, {}), server.url, timeout=PATIENT)
        stack.push_async_callback(opa.close)
        await opa.start()
        yield There(opa)


@asynccontextmanager
async def open_relations(
    kind: str, folder: Path, request: pytest.FixtureRequest
) -> AsyncGenerator[Apart | None]:
    """Tables in a file, a real SpiceDB, or none."""
    if kind == OFF:
        yield None
        return
    place = FILE if kind == STORE else kind
    async with open_engine(place, folder, request) as engine:
        yield lambda suffix: Tenants(engine, suffix)
