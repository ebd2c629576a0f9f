"""The queue and who works at it, as the settings say."""

import asyncio
from contextlib import AsyncExitStack
from typing import NamedTuple

from toolgate import upkeep
from toolgate.errors import StoreError
from toolgate.executor.deliveries import Deliveries
from toolgate.executor.queued import Answers, Queued
from toolgate.executor.trace.trace import Spans
from toolgate.queue.crowd import Crowd
from toolgate.queue.message import Result
from toolgate.settings.settings import Settings
from toolgate.store.database import Database
from toolgate.store.queue import TableQueue
from toolgate.worker.local import Local
from toolgate.worker.worker import Terms, Worker

# How often what is queued is counted, and what has ended elsewhere is looked for.
_COUNT = 1.0
_LOOK = 0.1
# What runs when the house closes may come to its end.
_PATIENCE = 10.0


class Queueing(NamedTuple):
    """The rooms of queued calls."""

    queue: TableQueue
    answers: Answers
    link: Queued
    local: Local


def queueing(
    settings: Settings, database: Database, spans: Spans | None, stack: AsyncExitStack
) -> Queueing:
    """Where calls are queued, and where their answers come to."""
    queue, answers = TableQueue(database), Answers()
    stack.push_async_callback(queue.close)
    crowd = Crowd(settings.queue.waiting, settings.queue.tenant_waiting)
    local = Local(queue)
    link = Queued(
        queue,
        answers,
        expires=settings.queue.expires,
        is_full=crowd.is_full,
        woken=local.woken,
        trace=dict if spans is None else spans.carried,
    )
    upkeep.keep_doing(_counting(queue, crowd), stack)
    upkeep.keep_doing(answers.look_for(queue, _LOOK), stack)
    return Queueing(queue, answers, link, local)


def work(settings: Settings, own: Queueing, deliveries: Deliveries, stack: AsyncExitStack) -> None:
    """Run queued calls in this process until the house closes, unless the settings say no."""
    if settings.queue.work == "never":
        return

    async def tell(result: Result) -> None:
        own.answers.give(result.id, result.output)
        own.local.woken()

    worker = Worker(
        own.queue,
        own.local,
        deliveries.run,
        Terms(
            concurrency=settings.queue.concurrency,
            lease=settings.queue.lease,
            most_attempts=settings.queue.attempts,
        ),
        expire=deliveries.expire,
        tell=tell,
    )
    upkeep.keep_doing(worker.run(), stack)
    stack.push_async_callback(worker.drain, _PATIENCE)


async def _counting(queue: TableQueue, crowd: Crowd) -> None:
    while True:
        try:
            if crowd.grew:
                crowd.count(await queue.waiting())
        except StoreError:
            # As it was counted last, and what came since.
            pass
        await asyncio.sleep(_COUNT)
