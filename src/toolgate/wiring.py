"""The gate's engines, as the settings name them: what is in this process, and what is not."""

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from toolgate.engines.keeper import Keeper
from toolgate.engines.modules import Modules
from toolgate.engines.rego import Rego
from toolgate.engines.watched import Watched
from toolgate.errors import InvalidPolicy, RelationsUnavailable, SettingsInvalid
from toolgate.gate.relations import Relations
from toolgate.gate.shared import NoShared, Shared
from toolgate.settings import Settings
from toolgate.store.database import Database
from toolgate.store.relations import TableRelations
from toolgate.tenancy.audit import Actor, Record
from toolgate.tenancy.changes import Change
from toolgate.tenancy.directory import UNSIGNED, Directory, RelationWriter
from toolgate.tenancy.relation import Relation
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tenancy.world import World


class Related(NamedTuple):
    """The engine that is asked, and where relations are written if not into the store."""

    engine: Relations | None = None
    writer: RelationWriter | None = None


class Announced:
    """A directory that tells the other nodes of each change."""

    def __init__(self, directory: Directory, shared: Shared) -> None:
        self._directory = directory
        self._shared = shared

    async def revision(self) -> int:
        """How many times the world was changed."""
        return await self._directory.revision()

    async def load(self, since: World | None = None) -> World:
        """The world."""
        return await self._directory.load(since)

    async def put(self, changes: tuple[Change, ...], actor: Actor = UNSIGNED) -> None:
        """Stored first, told afterwards."""
        await self._directory.put(changes, actor)
        await self._shared.announce(0)

    async def audit(
        self, *, tenant: str | None = None, limit: int = 100, before: int | None = None
    ) -> Sequence[Record]:
        """What was changed."""
        return await self._directory.audit(tenant=tenant, limit=limit, before=before)

    async def relations(self, tenant: str, *, limit: int) -> Sequence[Relation]:
        """A tenant's relations."""
        return await self._directory.relations(tenant, limit=limit)


def modules(settings: Settings) -> Modules:
    """Where policies come from."""
    return Modules(settings.path(settings.policy.path), bundled=settings.policy.bundled)


async def policy(
    settings: Settings, modules: Modules, tenancy: Tenancy, stack: AsyncExitStack
) -> Keeper:
    """The policy engine. A policy in files that cannot be used stops the start."""
    given = settings.policy
    problem = ""
    try:
        bundle = modules.load(tenancy.world.everyone.policies)
    except InvalidPolicy as error:
        # What is stored was checked when it was stored; by another version, perhaps.
        bundle = modules.load()
        problem = error.message
    if given.engine == "rego":
        engine = Rego(bundle)
    else:
        from toolgate.engines.opa import Opa  # noqa: PLC0415  brings the HTTP client
        from toolgate.net.client import HttpClient  # noqa: PLC0415

        client = HttpClient(timeout=given.timeout)
        stack.push_async_callback(client.close)
        engine = Opa(
            client,
            bundle,
            given.url,
            token=_secret("policy.token_env", given.token_env),
            push=given.push,
            timeout=given.timeout,
        )
        stack.push_async_callback(engine.close)
        await engine.start()
    if problem:
        engine.note(problem)
    return Keeper(modules, engine, lambda: tenancy.world.everyone.policies)


async def relations(settings: Settings, database: Database, stack: AsyncExitStack) -> Related:
    """The relations engine, if relations are asked for."""
    given = settings.relations
    if given.engine == "off":
        return Related()
    if given.engine == "store":
        return Related(TableRelations(database))
    try:
        from toolgate.engines.spicedb import SpiceDB  # noqa: PLC0415  its client is an extra
    except ImportError:
        raise SettingsInvalid(
            ["relations.engine: SpiceDB needs its client: make install EXTRAS=spicedb"]
        ) from None
    token = _secret("relations.token_env", given.token_env)
    engine = SpiceDB(given.url, token, given.timeout)
    stack.push_async_callback(engine.close)
    problem = ""
    try:
        await engine.start()
    except RelationsUnavailable as error:
        # It may come up later; until then nobody may do anything that it would have to allow.
        problem = error.message
    return Related(Watched(engine, "spicedb", problem), engine)


def shared(settings: Settings, wake: Callable[[int], None], stack: AsyncExitStack) -> Shared:
    """What nodes share; `wake` is called when another one has changed something."""
    if not settings.cache.url:
        return NoShared()
    try:
        from toolgate.store.redis import RedisShared  # noqa: PLC0415  its client is an extra
    except ImportError:
        raise SettingsInvalid(
            ["cache.url: Redis needs its client: make install EXTRAS=redis"]
        ) from None
    found = RedisShared(settings.cache.url)
    found.subscribe(wake)
    found.start()
    stack.push_async_callback(found.close)
    return found


def _secret(key: str, variable: str) -> str:
    if not variable:
        return ""
    value = os.environ.get(variable, "")
    if not value:
        raise SettingsInvalid([f"{key}: the environment has no variable {variable}"])
    return value
