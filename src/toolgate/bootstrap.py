"""Puts the house together: every room once, as the settings name it."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from toolgate import (
    beside,
    configuration,
    furnishing,
    outside,
    queueing,
    recording,
    upkeep,
    watching,
    wiring,
)
from toolgate.apart import ProvenApart, ReplayedApart
from toolgate.catalog.catalog import Catalog
from toolgate.catalog.source import Source
from toolgate.engines.keeper import Keeper
from toolgate.executor.executor import Executor, built_in
from toolgate.executor.extension import Extension
from toolgate.executor.people.people import People
from toolgate.executor.provider import Provider
from toolgate.gate.asking import Engines, Rules
from toolgate.gate.gate import Gate
from toolgate.gate.policy import HISTORY
from toolgate.kinds import Kinds
from toolgate.net.address import without_user
from toolgate.plugins.provider import PluginProvider
from toolgate.premises import unagreed
from toolgate.providers.http.provider import HttpProvider
from toolgate.providers.mcp import McpProvider
from toolgate.providers.python import PythonProvider
from toolgate.queue.queue import Queues
from toolgate.runtime import Runtime
from toolgate.settings.secrets import known_secrets
from toolgate.settings.settings import Settings
from toolgate.sources.database import DatabaseSource
from toolgate.sources.files import FileSource
from toolgate.sources.http import HttpSource
from toolgate.sources.kept import KeptFiles
from toolgate.sources.mcp.servers import Upstreams
from toolgate.sources.prepared import PreparedSource
from toolgate.spec.redactor import Redactor
from toolgate.spec.tool import Retry
from toolgate.storage import connect, looked_at, prepare
from toolgate.store.announced import Announced
from toolgate.store.catalog import CatalogTable, Row
from toolgate.store.database import Database
from toolgate.store.directory import TableDirectory
from toolgate.store.hold import Hold
from toolgate.store.secret import house_secret
from toolgate.store.trail import TableTrail
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tools.table import table
from toolgate.upstreams.member import Member
from toolgate.watching import Watched

if TYPE_CHECKING:
    from toolgate.client.remote import Remote
    from toolgate.net.client import HttpClient

log = logging.getLogger("toolgate")


T = TypeVar("T", bound=Runtime)


class Toolgate(Runtime):
    """The front door of the library."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings | Path | str | None = None,
        *,
        extensions: Sequence[Extension] = (),
        providers: Mapping[str, Provider] | None = None,
        servers: bool = True,
        scheduled: bool = True,
        queued: bool = True,
    ) -> AsyncGenerator[Self]:
        """Open on a settings file, or on embedded defaults; closing writes what waits.

        `servers`: whether MCP servers are reached; without, their tools are listed as last agreed.
        `scheduled`: whether what agents have scheduled is run here. `queued`: whether queued calls
        are, as the settings say.
        """
        if not isinstance(settings, Settings):
            settings = configuration.load(settings)
        async with AsyncExitStack() as stack:
            house = await _assembled(
                cls,
                settings,
                extensions,
                providers or {},
                _Tasks(servers, scheduled, queued),
                stack,
            )
            # Before anything else ends: what is taken now would be cut off.
            stack.callback(house.rest)
            yield house

    @staticmethod
    def connect(
        url: str, key: str, *, timeout: float = 60.0, allow_http: bool = False
    ) -> AbstractAsyncContextManager["Remote"]:
        """The same verbs on a server: what the key may call there, decided and run there.

        `timeout` is how long an answer may take, in seconds, beside the `wait_s` of a call. A key
        goes over https, or to this machine; `allow_http` is for a network that is itself secret.
        """
        from toolgate.client.remote import connected  # noqa: PLC0415  most gates are in here
        from toolgate.client.wire import Wire  # noqa: PLC0415  as above

        return connected(Wire(url, key, timeout=timeout, allow_http=allow_http))


class _Tasks(NamedTuple):
    """What this house does of what several can share."""

    servers: bool
    scheduled: bool
    queued: bool


async def _assembled(
    cls: type[T],
    settings: Settings,
    extensions: Sequence[Extension],
    providers: Mapping[str, Provider],
    tasks: _Tasks,
    stack: AsyncExitStack,
) -> T:
    """Every room, once, in the order in which they need each other; they end in the reverse one.

    What has to ask a room that comes later is handed a way to find it.
    """
    kinds = Kinds(settings, handed=providers)
    stack.push_async_callback(kinds.close)
    database = connect(settings)
    stack.push_async_callback(database.close)
    hold = await _prepared(settings, database, stack)
    watch = watching.begin(settings, database, stack)

    client = outside.client(settings, stack)
    kept = recording.records(settings, database, hold, client, stack)
    journal, outputs, publisher = kept.journal, kept.outputs, kept.publisher
    limits = wiring.limits(settings, database, journal.owner, lambda: tenancy.world, stack)
    redactor = Redactor(known_secrets(settings, os.environ))
    own = furnishing.builtin(
        settings,
        kinds,
        client,
        kept,
        # The gate and the house come later: they are asked when a tool runs.
        furnishing.Later(
            may=lambda: gate.view,
            perform=lambda: house.call,
            tell=lambda: people.bus.publish,
            reload_plugins=lambda: plugins.desk.reload_changed(),  # noqa: PLW0108  it is not yet
        ),
        stack,
    )
    python, others = _providers(settings, client, stack)
    queued = await queueing.queueing(settings, database, hold, watch.spans, stack)
    people = People(
        kept.approvals,
        decide=lambda: gate.decide,
        world=lambda: tenancy.world,
        mode=settings.approvals.mode,
        ttl=settings.approvals.ttl,
        is_full=None if publisher is None else publisher.is_full,
    )
    stack.callback(people.bus.close)
    # One store has the world and the journal. Where a person is asked about everything, that comes
    # before a call is begun.
    guarded = settings.approvals.mode != "always"
    chain = (
        *built_in(
            journal=journal,
            people=people,
            wait=settings.toolbox.default_wait,
            sessions=kept.history,
            looks_back=lambda: HISTORY in policy.engine.reads,
            outputs=outputs,
            output_limit=settings.toolbox.output_limit,
            redactor=redactor,
            concurrency=settings.limits.concurrency,
            waiting=settings.limits.waiting,
            watch=watch,
            limits=limits.links,
            queue=queued.link,
            guarded=guarded,
            patience={"http": Retry(attempts=1 + settings.providers.http.max_retries)},
        ),
        *extensions,
    )
    members: dict[str, Member] = {}
    executor = Executor(
        {
            **others,
            "builtin": own,
            "mcp": McpProvider(members),
            "queue": queued.provider,
            **providers,
        },
        chain,
        default_timeout=settings.toolbox.default_timeout,
        redactor=redactor,
        others=kinds.find,
    )
    stack.push_async_callback(executor.close)

    stored, directory = CatalogTable(database), TableDirectory(database)
    await stored.seed([Row(row.seed, row.source) for row in table().values()])
    catalog = Catalog(
        [
            DatabaseSource(stored, builtin=settings.tools.builtin),
            PreparedSource(FileSource(settings.root, settings.tools.files), kinds.prepare),
            KeptFiles(directory.tool_files),
            *(HttpSource(url, client.named(without_user(url))) for url in settings.tools.urls),
            *_documents(settings, client),
            *kinds.sources(),
        ],
        usable=executor.unusable,
    )
    # After every import of our own: no library finds an optional part of itself in that folder.
    beside.reach(settings.root, unagreed(settings))
    await catalog.reload()
    told = asyncio.Event()
    shared = wiring.shared(settings, lambda _revision: told.set(), stack)
    relations = await wiring.relations(settings, database, stack)
    modules = wiring.modules(settings)
    tenancy = Tenancy(
        Announced(directory, shared),
        known=lambda: catalog.current.specs,
        relations=relations.writer,
        check=wiring.check(settings, modules),
    )
    await tenancy.refresh()
    plugins = await outside.plugins(settings, catalog, tenancy, kinds.brought, stack)
    policy = await wiring.policy(settings, modules, tenancy, client, stack)

    _kept_up(settings, catalog, tenancy, policy.keeper, told, stack)
    remote = (*policy.remote, *relations.remote)
    gate = Gate(
        catalog,
        tenancy,
        Engines(policy.engine, relations.engine, kept.history, shared, remote),
        decisions=kept.decisions,
        redactor=redactor,
        guarded=guarded,
        rules=_rules(settings),
    )
    if remote:
        upkeep.keep_doing(upkeep.probe(gate), stack)
    _looked_after(kept, stack)
    secret = await house_secret(database, "doors")
    wiring.relay(settings, secret, people.bus, stack)
    house = cls(
        catalog=catalog,
        tenancy=tenancy,
        gate=gate,
        executor=executor,
        journal=journal,
        functions=python,
        decisions=kept.decisions,
        people=people,
        watch=watching.told(
            watch, settings, Watched(database, journal, kept.decisions, chain, queued.queue)
        ),
        features=settings.features,
        ledger=kept.ledger,
        lease=settings.toolbox.lease,
        most_calls=settings.toolbox.max_batch_size,
        parallel_mutations=settings.toolbox.parallel_mutations,
        usage=limits.usage,
        secret=secret,
        shelf=kept.shelf,
        upstreams=Upstreams(members),
        servers=await outside.servers(
            settings,
            catalog,
            tenancy,
            outside.Way(
                client, kinds.sandbox, members, redactor, plugins.keeper, asks=tasks.servers
            ),
            stack,
        ),
        plugins=plugins.desk,
        trail=ProvenApart(settings, TableTrail(database)),
        replayed=ReplayedApart(settings),
        held=lambda: hold.why,
        queue=Queues(queued.queue, queued.dead, queued.broker, lambda: sum(queued.left)),
        ground=kinds.ground,
    )
    _at_work(house, stack)
    if tasks.scheduled:
        furnishing.keep_appointments(own, hold, house.errands, stack)
    if tasks.queued:
        await queueing.work(
            settings,
            queued,
            watch.meter,
            house,
            partial(executor.close, 0.0),
            stack,
        )
    return house


def _rules(settings: Settings) -> Rules:
    """How the gate decides, beside what its engines say."""
    return Rules(
        observe=settings.policy.mode == "observe",
        unlisted_may_add=settings.policy.unlisted_personas_may_add,
        record_calls=settings.policy.record_calls,
        enabled_ttl_ns=round(settings.cache.enabled_ttl * 1e9),
        permission_ttl_ns=round(settings.cache.permission_ttl * 1e9),
        cascading=settings.features.cascading_tool_policy,
        destructive_waits=settings.features.side_effect_tracking,
    )


async def _prepared(settings: Settings, database: Database, stack: AsyncExitStack) -> Hold:
    """Its tables are there; and what is begun on it asks first whether it is held."""
    await prepare(settings, database)
    hold = Hold()
    found = await looked_at(settings, database, hold)
    stack.push_async_callback(found.close)
    upkeep.keep_doing(found.keep_looking(), stack)
    return hold


def _kept_up(
    settings: Settings,
    catalog: Catalog,
    tenancy: Tenancy,
    keeper: Keeper | None,
    told: asyncio.Event,
    stack: AsyncExitStack,
) -> None:
    """What exists and what is allowed stay what they are elsewhere."""
    upkeep.keep_doing(tenancy.uses.keep_writing(), stack)
    upkeep.keep_doing(upkeep.watch(tenancy, told), stack)
    upkeep.keep_doing(
        upkeep.reread(catalog, settings.tools.refresh or settings.cache.schema_ttl), stack
    )
    if settings.policy.refresh and keeper is not None:
        upkeep.keep_doing(upkeep.look_at_files(keeper, settings.policy.refresh), stack)


def _looked_after(kept: recording.Records, stack: AsyncExitStack) -> None:
    """What expires, and what is to be sent."""
    upkeep.keep_doing(upkeep.expire(kept.approvals), stack)
    if kept.publisher is not None:
        upkeep.keep_doing(kept.publisher.run(), stack)


def _at_work(house: Runtime, stack: AsyncExitStack) -> None:
    """What is lost is looked after, until the house is told to rest."""
    house.recovery.start()
    stack.push_async_callback(house.recovery.close)


def _providers(
    settings: Settings, client: "HttpClient", stack: AsyncExitStack
) -> tuple[PythonProvider, dict[str, Provider]]:
    """What runs the functions that a program adds; and by kind, what runs in this process."""
    concurrency = settings.limits.concurrency
    python = PythonProvider(concurrency=concurrency)
    plugin = PluginProvider(concurrency=concurrency)
    stack.callback(python.close)
    stack.callback(plugin.close)
    http = HttpProvider(settings.providers.http, client, output_limit=settings.toolbox.output_limit)
    stack.push_async_callback(http.close)
    return python, {"python": python, "plugin": plugin, "http": http}


def _documents(settings: Settings, client: "HttpClient") -> list[Source]:
    if not settings.tools.openapi:
        return []
    from toolgate import importing  # noqa: PLC0415  most houses have no document

    return importing.sources(settings, client)
