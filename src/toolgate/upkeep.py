"""What is done again and again while the house is open, each on its own."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, Protocol

from toolgate.catalog.catalog import Catalog
from toolgate.engines.keeper import Keeper
from toolgate.errors import CatalogError, StoreError
from toolgate.gate.gate import Gate
from toolgate.tenancy.tenancy import Tenancy

log = logging.getLogger("toolgate")
# How soon a change that another process made is seen here.
_REFRESH = 0.5
_REFRESH_SECONDS = 5.0
_PROBE = 1.0
_EXPIRE = 5.0


class Swept(Protocol):
    """What has things that expire."""

    async def sweep(self) -> object: ...


def keep_doing(work: Coroutine[Any, Any, None], stack: AsyncExitStack) -> None:
    """Until the house closes."""
    task = asyncio.create_task(work)

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)


async def watch(tenancy: Tenancy, told: asyncio.Event) -> None:
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


async def reread(catalog: Catalog, every: float) -> None:
    """Sources are asked again."""
    while True:
        await asyncio.sleep(every)
        try:
            await catalog.reload()
        except CatalogError as error:
            log.warning("the catalog stays as it was: %s", error)


async def probe(gate: Gate) -> None:
    """An engine that is away is noticed also while nobody has anything new to ask it."""
    while True:
        await asyncio.sleep(_PROBE)
        await gate.probe()


async def expire(approvals: Swept) -> None:
    """What nobody decided or used in time is shown as such, also where nobody asks."""
    while True:
        await asyncio.sleep(_EXPIRE)
        try:
            await approvals.sweep()
        except StoreError as error:
            log.warning("approvals could not be looked through: %s", error)


async def look_at_files(policy: Keeper, every: float) -> None:
    """Policies in files are read again when they change."""
    while True:
        await asyncio.sleep(every)
        await policy.look()
