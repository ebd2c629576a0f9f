"""The queue and who works at it, as the settings say."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from toolgate import upkeep
from toolgate.errors import SettingsInvalid, StoreError
from toolgate.executor.queued import Answers, Place, Queued
from toolgate.executor.trace.meter import Meter
from toolgate.executor.trace.trace import Spans
from toolgate.providers.queue import QueueProvider
from toolgate.queue.crowd import Crowd
from toolgate.queue.message import Letter, Result
from toolgate.runtime import Runtime
from toolgate.settings.settings import Settings
from toolgate.store.database import Database
from toolgate.store.dead import TableDead
from toolgate.store.hold import Hold
from toolgate.store.queue import TableQueue
from toolgate.store.queue_postgres import queue_at
from toolgate.store.secret import house_secret
from toolgate.store.shipping import TableShipping
from toolgate.worker.local import Local
from toolgate.worker.worker import Cut, Terms, Worker

if TYPE_CHECKING:
    from toolgate.brokers.carrier import Carrier

# How often what is queued is counted, and what has ended elsewhere is looked for.
_COUNT = 1.0
_LOOK = 0.1
# The same where a broker tells of it: that can get lost.
_LOOK_ASIDE = 1.0


class Queueing(NamedTuple):
    """The rooms of queued calls."""

    queue: TableQueue
    dead: TableDead
    answers: Answers
    link: Queued
    local: Local
    # Where a broker carries them.
    carrier: "Carrier | None"
    # What runs tools that another system runs.
    provider: QueueProvider
    # How many calls each worker here has cut off at its end.
    left: list[int]

    @property
    def broker(self) -> Callable[[], str] | None:
        """Why the broker does not carry calls, for whoever asks; `None` where there is none."""
        carrier = self.carrier
        return None if carrier is None else lambda: carrier.problem


async def queueing(
    settings: Settings,
    database: Database,
    hold: Hold,
    spans: Spans | None,
    stack: AsyncExitStack,
) -> Queueing:
    """Where calls are queued, and where their answers come to."""
    fleet = settings.queue
    queue = queue_at(database, tells=bool(fleet.url), hold=hold)
    answers, outside = Answers(), Answers()
    stack.push_async_callback(queue.close)
    crowd = Crowd(fleet.waiting, fleet.tenant_waiting)
    local = Local(queue)
    carrier = None
    if fleet.url:
        secret = await house_secret(database, "queue")
        shipping = TableShipping(database, hold)
        carrier = _carrier(settings, secret, queue, shipping, answers, outside, crowd.place)
        stack.push_async_callback(carrier.close)
    trace = dict[str, str] if spans is None else spans.carried
    link = Queued(
        queue,
        answers,
        expires=fleet.expires,
        place=crowd.place,
        woken=local.woken if carrier is None else carrier.woken,
        trace=trace,
    )
    upkeep.keep_doing(_counting(queue, crowd), stack)
    look = _LOOK if carrier is None else _LOOK_ASIDE
    upkeep.keep_doing(answers.look_for(queue, look), stack)
    dead = TableDead(database, fleet.expires, outbox=bool(settings.events.url))
    provider = QueueProvider(outside, carrier, trace=trace)
    return Queueing(queue, dead, answers, link, local, carrier, provider, [])


def _carrier(
    settings: Settings,
    secret: bytes,
    queue: TableQueue,
    shipping: TableShipping,
    answers: Answers,
    outside: Answers,
    place: Place,
) -> "Carrier":
    try:
        from toolgate.brokers.carrier import Carrier  # noqa: PLC0415  its client is an extra
    except ImportError:
        raise _no_client() from None
    return Carrier(settings, secret, queue, shipping, answers, outside, place=place)


async def examined(settings: Settings) -> Sequence[str]:
    """What is wrong with the broker and its topics; nothing is made."""
    try:
        from toolgate.brokers.cluster import connection  # noqa: PLC0415  its client is an extra
        from toolgate.brokers.topics import UnreachableError, check  # noqa: PLC0415  as above
    except ImportError:
        raise _no_client() from None
    try:
        return await check(connection(settings), settings.queue, looks_only=True)
    except UnreachableError as error:
        return [str(error)]


async def work(
    settings: Settings,
    own: Queueing,
    meter: Meter,
    house: Runtime,
    cut: Cut,
    stack: AsyncExitStack,
) -> None:
    """Send what is queued, and run it where the settings say so, until the house closes.

    `cut`: end what runs, whoever began it.
    """
    carrier, fleet, deliveries = own.carrier, settings.queue, house.deliveries
    house.partings.append(own.answers.part)
    if carrier is not None:
        await carrier.open(listens=fleet.work != "always")
    if fleet.work == "never" or (fleet.work == "auto" and carrier is not None):
        return

    async def tell(result: Result, letter: Letter | None) -> None:
        meter.end(result.output.status if letter is None else "dead")
        own.answers.give(result.id, result.output)
        if carrier is None:
            own.local.woken()
        else:
            await carrier.teller.tell(result, letter)

    worker = Worker(
        own.queue,
        own.local if carrier is None else carrier.arrivals(),
        deliveries.run,
        Terms(
            concurrency=fleet.concurrency,
            lease=fleet.lease,
            most_attempts=fleet.attempts,
        ),
        expire=deliveries.expire,
        tell=tell,
    )
    upkeep.keep_doing(worker.run(), stack)

    def rest() -> None:
        worker.rest()
        if carrier is None:
            own.answers.rest(worker.has)
        else:
            carrier.rest()

    house.errands.append(rest)

    async def drain() -> None:
        # Once: who asks for it again has had its time.
        if not own.left:
            own.left.append(0)
            own.left[0] = await worker.drain(fleet.drain, cut)

    house.partings.append(drain)
    stack.push_async_callback(drain)
    if carrier is not None:
        # First of all: others get what nobody here has claimed.
        stack.push_async_callback(carrier.leave)


def _no_client() -> SettingsInvalid:
    return SettingsInvalid(["queue.url: Kafka needs its client: make install EXTRAS=kafka"])


async def _counting(queue: TableQueue, crowd: Crowd) -> None:
    while True:
        try:
            if crowd.grew:
                crowd.begin()
                crowd.count(await queue.waiting())
        except StoreError:
            # As it was counted last, and what came since.
            pass
        await asyncio.sleep(_COUNT)
