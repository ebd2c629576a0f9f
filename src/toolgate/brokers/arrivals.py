"""Calls that a broker brings to a worker. The row of a call says what runs, never the message."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUntypedBaseClass=false

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from toolgate import clock
from toolgate.brokers.cluster import started
from toolgate.brokers.foreign import adopted, call_id
from toolgate.brokers.reader import Reader, Unread
from toolgate.brokers.seal import Seal
from toolgate.errors import StoreError
from toolgate.queue.message import UnreadableError
from toolgate.queue.queue import Item, Queue, Taken
from toolgate.queue.shipping import Poison, Shipping
from toolgate.settings.fleet import Fleet

_log = logging.getLogger("toolgate.worker")
_POLL_MS = 200
_WAIT = 0.5
_AGAIN = 1.0
# Who is dead holds up its partitions for so long; brokers allow no less.
_SESSION_MS = 6_000
_HEARTBEAT_MS = 1_000
# Who does not poll for so long is taken to be stuck. Nothing that a tool does keeps us from it.
POLL_INTERVAL_MS = 60_000
# What was claimed is said so often; what is brought twice until then is known by its row.
_COMMIT_NS = 250_000_000
_COMMIT_SECONDS = 1.0
_CLOSE_SECONDS = 5.0
# Of so many dead messages of one look each is told with its reason.
_MOST_TOLD = 20


class KafkaArrivals(ConsumerRebalanceListener):
    """One member of the workers' group. It polls whatever the worker is doing."""

    def __init__(
        self,
        connection: Mapping[str, Any],
        fleet: Fleet,
        queue: Queue,
        shipping: Shipping,
        seal: Seal,
    ) -> None:
        self._connection = connection
        self._fleet = fleet
        self._queue = queue
        self._shipping = shipping
        self._seal = seal
        # What was fetched and not looked at; beyond this, partitions are paused.
        self._found: deque[Any] = deque()
        self._most = max(2 * fleet.concurrency, 64)
        self._done: dict[Any, int] = {}
        self._news = asyncio.Event()
        self._consumer: AIOKafkaConsumer | None = None
        self._reader: Reader | None = None
        self._committed_ns = 0
        # Why nothing is brought; nothing where all is well.
        self.problem = "it has not begun"

    async def run(self) -> None:
        """Until it is cancelled. A broker that is away is asked again."""
        while True:
            consumer = AIOKafkaConsumer(
                **self._connection,
                group_id=self._fleet.group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=_SESSION_MS,
                heartbeat_interval_ms=_HEARTBEAT_MS,
                max_poll_interval_ms=POLL_INTERVAL_MS,
            )
            try:
                consumer.subscribe([self._fleet.topics.requests], listener=self)
                await started(consumer)
                self._consumer, self.problem = consumer, ""
                self._reader = Reader(consumer, {})
                await self._poll(consumer, self._reader)
            except Exception as error:  # noqa: BLE001  whoever polls must not end before the rest
                self.problem = f"calls are not brought ({type(error).__name__})"
                _log.warning("%s; the brokers are asked again", self.problem)
            finally:
                self._found.clear()
                await self._left(consumer)
                self._consumer = self._reader = None
            await asyncio.sleep(_AGAIN)

    async def take(self, room: int, lease: float) -> Sequence[Taken]:
        """What was brought, if nobody has it. Nothing is claimed after a wait: a worker that is
        told to end meanwhile claims nothing.
        """
        if not room:
            return []
        if not self._found:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT):
                    await self._news.wait()
            return []
        batch = [self._found.popleft() for _ in range(min(room, len(self._found)))]
        taken: list[Taken] = []
        try:
            await self._claim(batch, lease, taken)
        except BaseException as error:
            # Still to be claimed, also where others have been given them by now: what lies behind
            # them is claimed here, and what is committed for that speaks for them, too.
            had = {one.call_id for one in taken}
            left = [one for one in batch if _name(one) not in had]
            self._found.extendleft(reversed(left))
            if not taken or not isinstance(error, Exception):
                raise
            _log.warning("%d messages are looked at again (%s)", len(left), type(error).__name__)
            return taken
        for one in batch:
            self._done[_place(one)] = one.offset + 1
        return taken

    async def on_partitions_revoked(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, revoked: Iterable[Any]
    ) -> None:
        """Others are brought what was not committed, too. What was fetched here is claimed all the
        same, by whoever comes first: to drop it is to lose what comes in while they change hands.
        """
        await self._commit(set(revoked))
        for place in revoked:
            self._done.pop(place, None)
        if self._reader is not None:
            self._reader.forget(revoked)

    async def on_partitions_assigned(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, assigned: Iterable[Any]
    ) -> None:
        """They are read from where they were committed."""

    async def _poll(self, consumer: AIOKafkaConsumer, reader: Reader) -> None:
        while True:
            full = len(self._found) >= self._most
            if full:
                consumer.pause(*consumer.assignment())
            elif consumer.paused():
                consumer.resume(*consumer.paused())
            room = max(self._most - len(self._found), 1)
            # With no room it only says that somebody is there.
            read = await reader.read(timeout_ms=20 if full else _POLL_MS, most=room)
            self._found.extend(read)
            if self._found:
                self._news.set()
            if clock.monotonic_ns() - self._committed_ns > _COMMIT_NS:
                await self._commit(consumer.assignment())

    async def _claim(self, batch: Sequence[Any], lease: float, taken: list[Taken]) -> None:
        """What is claimed is in `taken` at once: it runs, whatever becomes of the rest."""
        poison: list[Poison] = []
        brought: dict[str, list[Any]] = {}
        for one in batch:
            try:
                brought.setdefault(_named(one), []).append(one)
            except Exception as error:  # noqa: BLE001  one message's trouble is not that of the others
                poison.append(_poison(one, error))
        taken += await self._queue.claim(list(brought), lease)
        had = {one.call_id for one in taken}
        left = {name: found for name, found in brought.items() if name not in had}
        items = await self._adopted(await self._foreign(left, poison), poison)
        if items:
            taken += await self._queue.claim([item.call_id for item in items], lease)
        if poison:
            await self._shipping.bury(poison)
            for one in poison[:_MOST_TOLD]:
                _log.error("the message %s is dead: %s", one.place, one.why)
            if len(poison) > _MOST_TOLD:
                _log.error("so are %d more", len(poison) - _MOST_TOLD)

    async def _foreign(
        self, left: Mapping[str, Sequence[Any]], poison: list[Poison]
    ) -> Mapping[str, tuple[Any, Item]]:
        """Of those that nobody could claim, what another system has sent.

        Anybody can write an id: the first message that is signed for it is the call.
        """
        if not left:
            return {}
        known = await self._shipping.known(left.keys())
        found: dict[str, tuple[Any, Item]] = {}
        for name, messages in left.items():
            if name in known:
                continue
            for one in messages:
                try:
                    # One of ours without a row was over so long ago that nobody keeps it.
                    if self._seal.is_ours(one.headers, one.value):
                        continue
                    item = adopted(one.value, one.headers, self._seal, expires=self._fleet.expires)
                except Exception as error:  # noqa: BLE001  as above
                    poison.append(_poison(one, error))
                else:
                    found.setdefault(name, (one, item))
        return found

    async def _adopted(
        self, found: Mapping[str, tuple[Any, Item]], poison: list[Poison]
    ) -> Sequence[Item]:
        """Those that have a row now. Where together they get none, each is tried alone."""
        if not found:
            return []
        items = [item for _, item in found.values()]
        try:
            await self._shipping.adopt(items)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  as above
            if len(found) > 1:
                alone = [await self._adopted({name: one}, poison) for name, one in found.items()]
                return [item for there in alone for item in there]
            poison += [_poison(one, error) for one, _ in found.values()]
            return []
        return items

    async def _commit(self, places: Iterable[Any]) -> None:
        self._committed_ns = clock.monotonic_ns()
        here = self._assigned()
        due = {
            place: self._done[place] for place in places if place in self._done and place in here
        }
        if not due or self._consumer is None:
            return
        try:
            await self._consumer.commit(due)
        except (KafkaError, OSError, TimeoutError) as error:
            # They are brought again, and known by their rows.
            _log.info("what was claimed is brought again (%s)", type(error).__name__)
            return
        for place, offset in due.items():
            if self._done.get(place) == offset:
                del self._done[place]

    def _assigned(self) -> set[Any]:
        return set() if self._consumer is None else set(self._consumer.assignment())

    async def _left(self, consumer: AIOKafkaConsumer) -> None:
        """The others of the group are told, so that nothing waits for us."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_COMMIT_SECONDS):
                await self._commit(self._assigned())
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await consumer.stop()


def _place(one: Any) -> Any:
    return TopicPartition(one.topic, one.partition)


def _named(one: Any) -> str:
    if isinstance(one, Unread):
        raise UnreadableError(one.why)
    return call_id(one.value)


def _name(one: Any) -> str:
    """Empty where it has none."""
    try:
        return _named(one)
    except Exception:  # noqa: BLE001  told where it is buried
        return ""


def _poison(one: Any, error: Exception) -> Poison:
    where = f"{one.topic}/{one.partition}/{one.offset}"
    # What is no reason of ours may hold a part of the message.
    why = str(error) if isinstance(error, UnreadableError) else type(error).__name__
    return Poison(place=where, content=one.value or b"", why=f"it cannot be read: {why}")
