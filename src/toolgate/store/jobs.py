"""Work that is handed to a thread with a connection, and how its answer finds the way back."""

import asyncio
import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sqlalchemy.exc import DBAPIError, IntegrityError

from toolgate.store.outage import outage


class Job(NamedTuple):
    """Work, and who waits for it."""

    work: Callable[..., Any]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[Any]"
    # What is done together with others of the same work.
    item: tuple[object, ...] = ()


class Answer(NamedTuple):
    """What came of a job."""

    job: Job
    value: Any
    error: BaseException | None


def give(answers: Iterable[Answer]) -> None:
    """Hand the answers to those who wait: each loop is woken once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_loop[answer.job.loop].append(answer)
    for loop, given in by_loop.items():
        # A loop that is gone waits for no answer.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, given)


def told(error: BaseException) -> BaseException:
    """The error as the asker may see it."""
    if isinstance(error, (DBAPIError, sqlite3.Error)) and not isinstance(error, IntegrityError):
        return outage(error)
    if isinstance(error, StopIteration):
        # A future does not take it, and whoever waits would wait for ever.
        return RuntimeError("the work ran out of something to iterate over")
    return error


def _resolve(answers: list[Answer]) -> None:
    for job, value, error in answers:
        if job.done.done():
            # Cancelled; the work is done all the same.
            continue
        if error is None:
            job.done.set_result(value)
        else:
            job.done.set_exception(told(error))
