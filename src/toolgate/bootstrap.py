"""Puts the house together. The only file that names concrete adapters."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from toolgate import configuration, watching, wiring
from toolgate.catalog.catalog import Catalog
from toolgate.catalog.source import Source
from toolgate.engines.keeper import Keeper
from toolgate.errors import CatalogError, SettingsInvalid, StoreError
from toolgate.executor.executor import Executor, built_in
from toolgate.executor.extension import Extension
from toolgate.executor.people import People
from toolgate.executor.provider import Provider
from toolgate.executor.recovery import renewing
from toolgate.gate.asking import Engines, Rules
from toolgate.gate.gate import Gate
from toolgate.gate.policy import HISTORY
from toolgate.ledger.events import MOST_WAITING
from toolgate.providers.python import PythonProvider
from toolgate.runtime import Runtime
from toolgate.settings.secrets import known_secrets
from toolgate.settings.settings import Settings
from toolgate.sinks.publisher import Publisher
from toolgate.sources.database import DatabaseSource
from toolgate.sources.files import FileSource
from toolgate.sources.http import HttpSource
from toolgate.spec.redactor import Redactor
from toolgate.store.announced import Announced
from toolgate.store.approvals import TableApprovals
from toolgate.store.catalog import CatalogTable, Row
from toolgate.store.database import Database
from toolgate.store.decisions import TableDecisions
from toolgate.store.directory import TableDirectory
from toolgate.store.history import TableHistory
from toolgate.store.journal import TableJournal
from toolgate.store.ledger import TableLedger
from toolgate.store.migrate import migrate, state
from toolgate.store.outbox import TableOutbox
from toolgate.store.outputs import TableOutputs
from toolgate.store.sqlite import Sqlite
from toolgate.store.trail import TableTrail
from toolgate.tenancy.audit import Trail
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tools.table import default_catalog, functions
from toolgate.watching import Watched

log = logging.getLogger("toolgate")
# How soon a change that another process made is seen here.
_REFRESH = 0.5
_REFRESH_SECONDS = 5.0
_PROBE = 1.0
_EXPIRE = 5.0


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
    ) -> AsyncGenerator[Self]:
        """Open on a settings file, or on embedded defaults; closing writes what waits."""
        if not isinstance(settings, Settings):
            settings = configuration.load(settings)
        async with AsyncExitStack() as stack:
            yield await _assembled(cls, settings, extensions, providers or {}, stack)


async def _assembled(
    cls: type[T],
    settings: Settings,
    extensions: Sequence[Extension],
    providers: Mapping[str, Provider],
    stack: AsyncExitStack,
) -> T:
    database = connect(settings)
    stack.push_async_callback(database.close)
    await migrate(database)
    watch = watching.begin(settings, database, stack)

    journal = TableJournal(
        database,
        lease=settings.toolbox.lease,
        ttl=settings.toolbox.default_idempotency_ttl,
        outbox=bool(settings.events.url),
    )
    journal.start()
    stack.push_async_callback(journal.close)
    ledger = TableLedger(database, journal.owner, outbox=bool(settings.events.url))
    _keep_doing(renewing(ledger, settings.toolbox.lease), stack)
    decisions = TableDecisions(database)
    decisions.start()
    stack.push_async_callback(decisions.close)
    history = TableHistory(database)
    stack.push_async_callback(history.close)

    outputs = TableOutputs(database, ttl=settings.toolbox.blob_ttl)
    outputs.start()
    stack.push_async_callback(outputs.close)

    limits = wiring.limits(settings, database, journal.owner, lambda: tenancy.world, stack)
    redactor = Redactor(known_secrets(settings, os.environ))
    python = PythonProvider(functions(outputs), concurrency=settings.limits.concurrency)
    stack.callback(python.close)
    approvals = TableApprovals(database, outbox=bool(settings.events.url))
    publisher = _publisher(settings, database, stack)
    people = People(
        approvals,
        decide=lambda: gate.decide,
        world=lambda: tenancy.world,
        mode=settings.approvals.mode,
        ttl=settings.approvals.ttl,
        is_full=None if publisher is None else publisher.is_full,
    )
    stack.callback(people.bus.close)
    chain = (
        *built_in(
            journal=journal,
            people=people,
            wait=settings.toolbox.default_wait,
            sessions=history,
            looks_back=lambda: HISTORY in policy.engine.reads,
            outputs=outputs,
            output_limit=settings.toolbox.output_limit,
            redactor=redactor,
            concurrency=settings.limits.concurrency,
            waiting=settings.limits.waiting,
            watch=watch,
            limits=limits.links,
        ),
        *extensions,
    )
    executor = Executor(
        {"python": python, **providers},
        chain,
        default_timeout=settings.toolbox.default_timeout,
        redactor=redactor,
    )
    stack.push_async_callback(executor.close)

    stored = CatalogTable(database)
    await stored.seed([Row(seed.definition, seed.source) for seed in default_catalog()])
    catalog = Catalog(
        [
            DatabaseSource(stored, builtin=settings.tools.builtin),
            FileSource(settings.root, settings.tools.files),
            *_http_sources(settings.tools.urls, stack),
        ],
        usable=executor.unusable,
    )
    # After every import of our own: no library finds an optional part of itself in that folder.
    _reach_modules(settings.root)
    await catalog.reload()
    told = asyncio.Event()
    shared = wiring.shared(settings, lambda _revision: told.set(), stack)
    relations = await wiring.relations(settings, database, stack)
    modules = wiring.modules(settings)
    tenancy = Tenancy(
        Announced(TableDirectory(database), shared),
        known=lambda: catalog.current.specs,
        relations=relations.writer,
        check=wiring.check(settings, modules),
    )
    await tenancy.refresh()
    policy = await wiring.policy(settings, modules, tenancy, stack)

    _keep_doing(_watch(tenancy, told), stack)
    _keep_doing(_reread(catalog, settings.tools.refresh or settings.cache.schema_ttl), stack)
    if settings.policy.refresh and policy.keeper is not None:
        _keep_doing(_look_at_files(policy.keeper, settings.policy.refresh), stack)
    remote = (*policy.remote, *relations.remote)
    gate = Gate(
        catalog,
        tenancy,
        Engines(policy.engine, relations.engine, history, shared, remote),
        decisions=decisions,
        redactor=redactor,
        rules=Rules(
            observe=settings.policy.mode == "observe",
            unlisted_may_add=settings.policy.unlisted_personas_may_add,
            record_calls=settings.policy.record_calls,
            enabled_ttl_ns=round(settings.cache.enabled_ttl * 1e9),
            permission_ttl_ns=round(settings.cache.permission_ttl * 1e9),
            cascading=settings.features.cascading_tool_policy,
            destructive_waits=settings.features.side_effect_tracking,
        ),
    )
    if remote:
        _keep_doing(_probe(gate), stack)
    _keep_doing(_expire(approvals), stack)
    if publisher is not None:
        _keep_doing(publisher.run(), stack)
    house = cls(
        catalog=catalog,
        tenancy=tenancy,
        gate=gate,
        executor=executor,
        journal=journal,
        functions=python,
        decisions=decisions,
        people=people,
        watch=watching.told(watch, settings, Watched(database, journal, decisions, chain)),
        features=settings.features,
        ledger=ledger,
        lease=settings.toolbox.lease,
        most_calls=settings.toolbox.max_batch_size,
        parallel_mutations=settings.toolbox.parallel_mutations,
        usage=limits.usage,
    )
    # The last to begin is the first to end: nothing is taken over once the house closes.
    house.recovery.start()
    stack.push_async_callback(house.recovery.close)
    return house


async def store_state(settings: Settings) -> Literal["current", "empty", "old"]:
    """How the store is, without making or changing anything."""
    path = settings.store.url.removeprefix("sqlite:///")
    if path != settings.store.url and (path == ":memory:" or not settings.path(path).exists()):
        return "empty"
    database = connect(settings)
    try:
        return await state(database)
    finally:
        await database.close()


@asynccontextmanager
async def audit_trail(settings: Settings) -> AsyncGenerator[Trail]:
    """The audit alone: what is proven does not rest on tools or policies that can be read."""
    database = connect(settings)
    try:
        await migrate(database)
        yield TableTrail(database)
    finally:
        await database.close()


def connect(settings: Settings) -> Database:
    """The database that the settings name."""
    url = settings.store.url
    if not url.startswith("sqlite:///"):
        return _postgres(url)
    path = url.removeprefix("sqlite:///")
    return Sqlite(None if path == ":memory:" else settings.path(path))


def _postgres(url: str) -> Database:
    try:
        from toolgate.store.postgres import Postgres  # noqa: PLC0415  its driver is an extra
    except ImportError:
        raise SettingsInvalid(
            ["store.url: PostgreSQL needs its driver: make install EXTRAS=postgres"]
        ) from None
    return Postgres(url)


def _http_sources(urls: Sequence[str], stack: AsyncExitStack) -> list[Source]:
    if not urls:
        return []
    from toolgate.net.client import HttpClient  # noqa: PLC0415  a tenth of the start's time

    client = HttpClient()
    stack.push_async_callback(client.close)
    return [HttpSource(url, client) for url in urls]


def _reach_modules(root: Path) -> None:
    """Tool files name modules beside them. Last in line, so that none hides a library's."""
    if str(root) not in sys.path:
        sys.path.append(str(root))


async def _watch(tenancy: Tenancy, told: asyncio.Event) -> None:
    """Look twice a second, and at once when another node says so."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REFRESH):
                await told.wait()
        told.clear()
        try:
            async with asyncio.timeout(_REFRESH_SECONDS):
                await tenancy.refresh()
        except (StoreError, TimeoutError):
            # A store that is away keeps the world as it was; side effects then ask for themselves.
            continue
        except Exception as error:  # noqa: BLE001  one row that cannot be read must not end this
            log.error(  # noqa: TRY400  a trace would show the row
                "changes by other processes cannot be read (%s)", type(error).__name__
            )


async def _reread(catalog: Catalog, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        try:
            await catalog.reload()
        except CatalogError as error:
            log.warning("the catalog stays as it was: %s", error)


async def _probe(gate: Gate) -> None:
    """An engine that is away is noticed also while nobody has anything new to ask it."""
    while True:
        await asyncio.sleep(_PROBE)
        await gate.probe()


async def _expire(approvals: TableApprovals) -> None:
    """What nobody decided or used in time is shown as such, also where nobody asks."""
    while True:
        await asyncio.sleep(_EXPIRE)
        try:
            await approvals.sweep()
        except StoreError as error:
            log.warning("approvals could not be looked through: %s", error)


def _publisher(
    settings: Settings, database: Database, stack: AsyncExitStack
) -> Publisher | None:
    """What sends events, where they are sent to somebody."""
    if not settings.events.url:
        return None
    from toolgate.net.client import HttpClient  # noqa: PLC0415  a tenth of the start's time
    from toolgate.sinks.webhook import Webhook  # noqa: PLC0415  with it

    secret = os.environ.get(settings.events.secret_env, "")
    if not secret:
        raise SettingsInvalid(
            [f"events.secret_env: the variable {settings.events.secret_env} is empty or not set"]
        )
    client = HttpClient()
    stack.push_async_callback(client.close)
    webhook = Webhook(client, settings.events.url, secret)
    return Publisher(TableOutbox(database), webhook, most=MOST_WAITING)


async def _look_at_files(policy: Keeper, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        await policy.look()


def _keep_doing(work: Coroutine[Any, Any, None], stack: AsyncExitStack) -> None:
    """Until the house closes."""
    task = asyncio.create_task(work)

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)
