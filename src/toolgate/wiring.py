"""The gate's engines, as the settings name them: what is in this process, and what is not."""

import hashlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from toolgate import upkeep
from toolgate.catalog.catalog import Catalog
from toolgate.engines import folder
from toolgate.engines.bundle import Bundle
from toolgate.engines.keeper import Keeper
from toolgate.engines.modules import Modules
from toolgate.engines.rego import Rego
from toolgate.errors import InvalidPolicy, SettingsInvalid
from toolgate.executor.extension import Extension
from toolgate.executor.limits.budget import Budget
from toolgate.executor.limits.purses import Purses
from toolgate.executor.limits.rate import Rate, Rates, usual
from toolgate.executor.limits.usage import Usage
from toolgate.executor.people.bus import Bus
from toolgate.gate.policy import Policy, Remote
from toolgate.gate.relations import Relations
from toolgate.gate.shared import NoShared, Shared
from toolgate.ledger.owner import Owner
from toolgate.net.address import without_user
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.plugins.brought import Brought
from toolgate.plugins.desk import Desk as PluginDesk
from toolgate.plugins.keeper import Keeper as Plugins
from toolgate.premises import roots_of
from toolgate.providers.http.secret import Secrets
from toolgate.sandbox.sandbox import Sandbox
from toolgate.settings.outward import McpServer
from toolgate.settings.secrets import known_secrets
from toolgate.settings.settings import Settings
from toolgate.sources.mcp.admission import Admission
from toolgate.sources.mcp.review import Desk
from toolgate.sources.mcp.servers import Servers
from toolgate.spec.redactor import Redactor
from toolgate.store.budgets import TableBudgets
from toolgate.store.database import Database
from toolgate.store.relations import TableRelations
from toolgate.tenancy.directory import RelationWriter
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tenancy.world import World
from toolgate.upstreams.member import Member
from toolgate.upstreams.review import Review
from toolgate.upstreams.upstream import Upstream

if TYPE_CHECKING:
    from toolgate.engines.opa import Opa


_NO_PROGRAM = "It is no program."


class Related(NamedTuple):
    """The engine that is asked, and where relations are written if not into the store."""

    engine: Relations | None = None
    writer: RelationWriter | None = None
    remote: tuple[Remote, ...] = ()


class Ruled(NamedTuple):
    """The policy, what keeps it up to date, and where it is if not in this process."""

    engine: Policy
    keeper: Keeper | None = None
    remote: tuple[Remote, ...] = ()


class Limited(NamedTuple):
    """The links that limit calls, and what tells how much of it is used."""

    links: tuple[Extension, ...]
    usage: Usage


def outward(settings: Settings, stack: AsyncExitStack) -> HttpClient:
    """The one client of the house. What the settings name is reached by `client.named(url)`."""
    client = HttpClient(Guard(settings.net.allow))
    stack.push_async_callback(client.close)
    return client


def modules(settings: Settings) -> Modules:
    """Where policies come from."""
    return Modules(folder.named(settings), bundled=settings.policy.bundled)


def check(settings: Settings, modules: Modules) -> Callable[[Mapping[str, str]], object]:
    """What a module is checked by before it is stored."""

    def refuse(_stored: Mapping[str, str]) -> None:
        raise InvalidPolicy(
            ["the policy is on the OPA server by itself ([policy] push = false): change it there"]
        )

    return modules.load if settings.policy.push else refuse


async def policy(
    settings: Settings,
    modules: Modules,
    tenancy: Tenancy,
    client: HttpClient,
    stack: AsyncExitStack,
) -> Ruled:
    """The policy engine. A policy in files that cannot be used stops the start."""
    given = settings.policy
    if given.engine == "opa" and not given.push:
        server = await _opa(settings, None, client, stack)
        return Ruled(server, None, (server,))
    stored, problem = tenancy.world.everyone.policies, ""
    try:
        bundle = modules.load(stored)
    except InvalidPolicy as error:
        # What is stored was checked when it was stored; by another version, perhaps.
        bundle = modules.load()
        problem = error.message
    remote: tuple[Remote, ...] = ()
    if given.engine == "rego":
        engine = Rego(bundle)
    else:
        engine = await _opa(settings, bundle, client, stack)
        remote = (engine,)
    if problem:
        engine.note(problem)
    keeper = Keeper(modules, engine, lambda: tenancy.world.everyone.policies)
    return Ruled(keeper, keeper, remote)


async def _opa(
    settings: Settings, bundle: Bundle | None, client: HttpClient, stack: AsyncExitStack
) -> "Opa":
    from toolgate.engines.opa import Opa  # noqa: PLC0415  most gates decide in this process

    given = settings.policy
    engine = Opa(
        client.named(without_user(given.url)),
        bundle,
        given.url,
        token=_secret("policy.token_env", given.token_env),
        timeout=given.timeout,
    )
    stack.push_async_callback(engine.close)
    await engine.start()
    return engine


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
    await engine.start()
    return Related(engine, engine, (engine,))


def shared(settings: Settings, wake: Callable[[int], None], stack: AsyncExitStack) -> Shared:
    """What nodes share; `wake` is called when another one has changed something."""
    if not settings.cache.url:
        return NoShared()
    try:
        from toolgate.store.redis import RedisShared  # noqa: PLC0415  its client is an extra
    except ImportError:
        raise _no_redis() from None
    found = RedisShared(settings.cache.url, _installation(settings))
    found.subscribe(wake)
    found.start()
    stack.push_async_callback(found.close)
    return found


def relay(settings: Settings, secret: bytes, bus: Bus, stack: AsyncExitStack) -> None:
    """Events of other nodes are told here, and ours there; `secret` is the same on all of them."""
    if not settings.cache.url:
        return
    from toolgate.store.relay import RedisRelay  # noqa: PLC0415  its client is an extra

    bus.relay = found = RedisRelay(settings.cache.url, _installation(settings), secret, bus)
    stack.push_async_callback(found.close)


def limits(
    settings: Settings,
    database: Database,
    owner: Owner,
    world: Callable[[], World],
    stack: AsyncExitStack,
) -> Limited:
    """How much is let through: in a time, and in a month."""
    given = settings.limits
    budgets = TableBudgets(database, owner)
    purses = Purses(budgets)
    purses.start()
    stack.push_async_callback(purses.close)
    rate = Rate(
        world,
        usual=usual(tenant=given.tenant, persona=given.persona, tool=given.tool),
        shared=_rates(settings, stack),
        processes=given.processes,
    )
    plan, asks = given.default_plan, settings.approvals.mode == "always"
    return Limited(
        (rate, Budget(purses, world, default_plan=plan, always_asks=asks)),
        Usage(budgets, purses, world, default_plan=plan),
    )


class Plugged(NamedTuple):
    """What keeps the plugins, and what operators see of them."""

    keeper: Plugins
    desk: PluginDesk


class Outside(NamedTuple):
    """How servers are reached; `reach`: whether they are at all. `plugins` bring some."""

    client: HttpClient
    sandbox: Callable[[], Awaitable[Sandbox]]
    members: dict[str, Member]
    redactor: Redactor
    plugins: Plugins
    reach: bool = True


async def servers(
    settings: Settings,
    catalog: Catalog,
    tenancy: Tenancy,
    outside: Outside,
    stack: AsyncExitStack,
) -> Review:
    """The MCP servers of the settings and of the store. One that is away stops no start."""

    secrets = Secrets(settings.providers.http.secrets, os.environ)

    async def make(name: str, given: McpServer) -> Upstream:
        outside.redactor.learn(known_secrets(given, os.environ))
        from toolgate.sandbox.choosing import Refusing  # noqa: PLC0415  only where one is used
        from toolgate.upstreams.dialing import connected  # noqa: PLC0415  as above

        # Paths of the settings start from the folder that those are in.
        rooted = {
            field: tuple(str(settings.path(one)) for one in getattr(given, field))
            for field in ("readable", "writable")
        }
        if given.command and "/" in given.command[0]:
            program = str(settings.path(given.command[0]))
            rooted["command"] = (program, *given.command[1:])
        return connected(
            name,
            given.model_copy(update=rooted),
            client=outside.client,
            sandbox=await outside.sandbox() if given.command else Refusing(_NO_PROGRAM),
            environ=os.environ,
            # An address that was added is reached as any other: where [net] allow says so.
            is_named=name in settings.mcp.servers,
            secret=secrets.sent_to,
        )

    mcp = settings.mcp
    found = Servers(
        mcp.servers,
        catalog,
        tenancy,
        members=outside.members,
        make=make,
        path=settings.path,
        admission=Admission(
            mcp.added_env,
            mcp.added_roots,
            mcp.added_hosts,
            settings.path,
            outside.client.guard,
            roots_of(settings),
        ),
        asks=outside.reach,
        beside=outside.plugins.servers,
    )
    stack.push_async_callback(found.close)
    await found.follow()
    outside.plugins.on_servers = found.follow
    upkeep.keep_doing(found.run(), stack)
    return Desk(found, tenancy)


async def plugins(
    settings: Settings,
    catalog: Catalog,
    tenancy: Tenancy,
    brought: Brought,
    stack: AsyncExitStack,
) -> Plugged:
    """The plugins in their folders. One that is wrong stops no start."""
    given = settings.plugins
    keeper = Plugins(
        [settings.path(one) for one in settings.tools.plugins],
        catalog,
        tenancy,
        settings=settings.path(given.settings),
        data=settings.path(given.data),
        brought=brought,
        trusted=given.trusted,
    )
    stack.callback(keeper.close)
    await keeper.look()
    if given.refresh:
        upkeep.keep_doing(keeper.run(given.refresh), stack)
    return Plugged(keeper, PluginDesk(keeper, tenancy))


def _rates(settings: Settings, stack: AsyncExitStack) -> Rates | None:
    if not settings.cache.url:
        return None
    try:
        from toolgate.store.rates import RedisRates  # noqa: PLC0415  its client is an extra
    except ImportError:
        raise _no_redis() from None
    found = RedisRates(settings.cache.url, _installation(settings))
    stack.push_async_callback(found.close)
    return found


def _no_redis() -> SettingsInvalid:
    return SettingsInvalid(["cache.url: Redis needs its client: make install EXTRAS=redis"])


def _installation(settings: Settings) -> str:
    """The same for all nodes of one store, and for no others; who logs in does not matter."""
    kind, _, place = settings.store.url.partition("://")
    place = place.rpartition("@")[2]
    if kind == "sqlite":
        place = str(settings.path(place.removeprefix("/")))
    return hashlib.sha256(f"{kind}://{place}".encode()).hexdigest()[:12]


def _secret(key: str, variable: str) -> str:
    if not variable:
        return ""
    value = os.environ.get(variable, "")
    if not value:
        raise SettingsInvalid([f"{key}: the environment has no variable {variable}"])
    return value


@asynccontextmanager
async def fetching(
    *named: str, allow: Sequence[str] = ()
) -> AsyncGenerator[Callable[[str, int], Awaitable[tuple[int, bytes]]]]:
    """The one HTTP client, for a door that has to ask who signs its callers' tokens.

    `named` are the issuer's addresses in the settings; where its metadata leads on from there is
    the guard's to decide.
    """
    client = HttpClient(Guard(allow).named(*named))

    async def fetch(url: str, most: int) -> tuple[int, bytes]:
        answer = await client.get(url, headers={"Accept": "application/json"}, most=most)
        return answer.status, answer.body

    try:
        yield fetch
    finally:
        await client.close()
