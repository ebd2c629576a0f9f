"""All that goes between this process and the brokers: calls, ends, and what others run."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from toolgate.brokers.arrivals import KafkaArrivals
from toolgate.brokers.cluster import connection
from toolgate.brokers.line import Fate, Line, Record
from toolgate.brokers.publisher import Publisher
from toolgate.brokers.results import Results
from toolgate.brokers.seal import AT, PRODUCER, SIGNATURE, Seal, Signer
from toolgate.brokers.teller import Teller
from toolgate.brokers.topics import UnreachableError, check
from toolgate.clock import unix_ns
from toolgate.errors import SettingsInvalid
from toolgate.executor.queued import Answers, Place, any_place
from toolgate.net.signature import signature, signing_secret
from toolgate.queue.message import VERSION, Request, written
from toolgate.queue.queue import Queue
from toolgate.queue.shipping import Shipping
from toolgate.settings.settings import Settings

_log = logging.getLogger("toolgate.queue")
_AGAIN = 5.0
_LISTEN_SECONDS = 5.0
_LAST_WORDS = 5.0
# Of so many calls that were not answered in time an answer is still told of.
_MOST_OVERDUE = 1_000


class Carrier:
    """One of each process. Nothing is connected before something is needed."""

    def __init__(
        self,
        settings: Settings,
        secret: bytes,
        queue: Queue,
        shipping: Shipping,
        answers: Answers,
        outside: Answers,
        *,
        place: Place = any_place,
    ) -> None:
        """`place`: whether a tenant has one more in the queue."""
        fleet = settings.queue
        self._place = place
        self._fleet = fleet
        self._connection = connection(settings)
        self._signers = _signers(settings)
        self._queue = queue
        self._shipping = shipping
        self._seal = Seal(secret, self._signers, lasts=fleet.expires)
        self._line = Line(self._connection)
        # The calls that other systems run, with their tenant and who is to answer.
        self._handed: dict[str, tuple[str, str]] = {}
        # Those of them that nobody waits for any more, and that were not answered.
        self._overdue: dict[str, tuple[str, str]] = {}
        self.teller = Teller(shipping, self._line, fleet.topics, self._seal)
        self.publisher = Publisher(queue, shipping, self._line, self.teller, fleet, self._seal)
        self._results = Results(
            self._connection,
            fleet.topics.results,
            self._seal,
            answers,
            outside=outside,
            may_answer=self._may_answer,
            overdue=self._overdue,
            heard=self.publisher.woken,
        )
        self._arrivals: KafkaArrivals | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: asyncio.Task[None] | None = None
        self._unreachable = ""
        # A topic that is asked for before it was looked at may be made by the broker.
        self._checked = asyncio.Event()

    @property
    def producers(self) -> Mapping[str, object]:
        """The systems that may answer, by name."""
        return self._signers

    @property
    def problem(self) -> str:
        """What an operator should look at; nothing where all is well."""
        bringing = "" if self._arrivals is None else self._arrivals.problem
        hearing = self._results.problem if "results" in self._tasks else ""
        return self._unreachable or self._line.problem or bringing or hearing

    def woken(self) -> None:
        """Something was queued here, and its answer is waited for."""
        self.publisher.woken()
        self._keep("results", self._results.run)

    async def open(self, *, listens: bool) -> None:
        """Look at the topics, and begin to send. `listens`: to results, too, before anybody asks.

        A process that only works has nobody who waits for them.
        """
        try:
            await self._check()
        except UnreachableError as error:
            # Calls that are not queued do without a broker, and so does this start.
            self._unreachable = str(error)
            _log.warning("%s", error)
            self._begin("check", self._check_again)
        self._keep("teller", self.teller.run)
        self._keep("publisher", self.publisher.run)
        if listens:
            self._keep("results", self._results.run)

    def arrivals(self) -> KafkaArrivals:
        """Calls for a worker, from now on."""
        self._arrivals = KafkaArrivals(
            self._connection,
            self._fleet,
            self._queue,
            self._shipping,
            self._seal,
            place=self._place,
            woken=self.publisher.woken,
        )
        self._keep("arrivals", self._arrivals.run)
        return self._arrivals

    def rest(self) -> None:
        """Begin to leave."""
        self._leaving = self._leaving or asyncio.create_task(self._end("arrivals"))

    async def leave(self) -> None:
        """Others get the calls that nobody here has claimed."""
        if self._leaving is not None:
            await self._leaving
        await self._end("arrivals")
        self._arrivals = None

    async def close(self) -> None:
        """What has ended here is told, if that takes a moment only."""
        await self.leave()
        if not self.problem:
            await self.teller.finish(_LAST_WORDS)
        for name in list(self._tasks):
            await self._end(name)
        await self._line.close()

    async def listens(self) -> bool:
        """Whether an answer would be heard."""
        try:
            async with asyncio.timeout(_LISTEN_SECONDS):
                if not self._checked.is_set():
                    await self._check()
                self._keep("results", self._results.run)
                await self._results.ready()
        except (TimeoutError, UnreachableError):
            return False
        return await self._line.ready()

    async def hand_over(self, topic: str, request: Request, to: str) -> bool:
        """Whether it has arrived at the broker. It is signed for whom it is meant for."""
        message = written(request)
        headers: list[tuple[str, bytes]] = [
            ("toolgate-version", str(VERSION).encode()),
            *((name, value.encode()) for name, value in request.trace.items()),
        ]
        if to:
            at = str(unix_ns() // 1_000_000_000)
            signed = signature(self._signers[to].secret, at, message)
            headers += [
                (PRODUCER, to.encode()),
                (AT, at.encode()),
                (SIGNATURE, signed.encode()),
            ]
        self._handed[request.id] = (request.caller.tenant, to)
        # It is tried once more.
        self._overdue.pop(request.id, None)
        record = Record(topic, request.id.encode(), message, tuple(headers))
        return (await self._line.send([record]))[0] is Fate.ARRIVED

    def forget(self, call_id: str, *, answered: bool) -> None:
        """Nobody waits for its answer any more."""
        handed = self._handed.pop(call_id, None)
        if handed is not None and not answered:
            self._overdue[call_id] = handed
            if len(self._overdue) > _MOST_OVERDUE:
                del self._overdue[next(iter(self._overdue))]

    def _may_answer(self, call_id: str, signer: Signer) -> bool:
        nobody = ("", "")
        tenant, to = self._handed.get(call_id) or self._overdue.get(call_id, nobody)
        if not tenant or not signer.speaks_for(tenant):
            return False
        return not to or self._signers.get(to) is signer

    async def _check(self) -> None:
        for told in await check(self._connection, self._fleet):
            _log.warning("%s", told)
        self._unreachable = ""
        self._checked.set()

    async def _check_again(self) -> None:
        while self._unreachable:
            await asyncio.sleep(_AGAIN)
            try:
                await self._check()
            except UnreachableError as error:
                self._unreachable = str(error)
            except SettingsInvalid as error:
                self._unreachable = error.message
                _log.error("%s", error.message)

    def _keep(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Once the topics are known to be there."""
        if name in self._tasks:
            return

        async def later() -> None:
            await self._checked.wait()
            await work()

        self._begin(name, later)

    def _begin(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(work(), name=f"toolgate-{name}")

    async def _end(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _signers(settings: Settings) -> Mapping[str, Signer]:
    found: dict[str, Signer] = {}
    for name, one in settings.queue.producers.items():
        where = f"queue.producers.{name}.secret_env"
        secret = signing_secret(where, one.secret_env, os.environ)
        found[name] = Signer(secret.encode(), frozenset(one.tenants))
    return found
