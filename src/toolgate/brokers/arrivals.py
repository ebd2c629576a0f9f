"""Calls that a broker brings to a worker. The row of a call says what runs, never the message."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUntypedBaseClass=false

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from toolgate import clock
from toolgate.brokers.backlog import Backlog, Noted
from toolgate.brokers.cluster import started
from toolgate.brokers.foreign import TAKEN, adopted, call_id, signed
from toolgate.brokers.reader import Reader, Unread
from toolgate.brokers.seal import Seal
from toolgate.crash import crash_here
from toolgate.errors import StoreError
from toolgate.executor.queued import Place, any_place
from toolgate.queue.message import UnreadableError
from toolgate.queue.queue import NOBODY, Item, Queue, Taken
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
# Who has waited behind others gets a turn so often.
_TURN_NS = 250_000_000
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
        *,
        place: Place = any_place,
        woken: Callable[[], object] = lambda: None,
    ) -> None:
        """`place`: whether a tenant has one more in the queue. `woken`: there is more to send."""
        self._connection = connection
        self._fleet = fleet
        self._queue = queue
        self._shipping = shipping
        self._seal = seal
        self._place = place
        self._woken = woken
        # Where it has no room, partitions are paused.
        self._found = Backlog(max(2 * fleet.concurrency, 64))
        # Whoever looks at messages has them to itself: of one order they get rows as they came.
        self._looking = asyncio.Lock()
        self._turned_ns = 0
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
                await self._left(consumer)
                # Only then: what is here is not done with.
                self._found.clear()
                self._consumer = self._reader = None
            await asyncio.sleep(_AGAIN)

    async def take(
        self, room: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """What was brought, if nobody has it. Nothing is claimed after a wait: a worker that is
        told to end meanwhile claims nothing.
        """
        if not room:
            return []
        if but:
            return await self._turns(room, lease, but)
        if not self._found:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT):
                    await self._news.wait()
            return []
        if len(self._found) > room and (turns := await self._turns(room, lease)):
            return turns
        taken: list[Taken] = []
        async with self._looking:
            batch = self._found.take(room)
            try:
                await self._claim(batch, lease, taken)
            except BaseException as error:
                # Still to be claimed, also where others have been given them by now: what lies
                # behind them is claimed here, and what is committed for that speaks for them, too.
                had = {one.call_id for one in taken}
                left = [one for one in batch if _name(one) not in had]
                self._found.put_back(left)
                if not taken or not isinstance(error, Exception):
                    raise
                told = type(error).__name__
                _log.warning("%d messages are looked at again (%s)", len(left), told)
                return taken
            self._found.passed(batch)
        return taken

    async def _turns(
        self, room: int, lease: float, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """Where more waits than there is room for: now and then of each tenant in turn, whatever
        lies first. Its messages find it taken.
        """
        now = clock.monotonic_ns()
        if now - self._turned_ns < _TURN_NS:
            return []
        self._turned_ns = now
        if but and self._found.whole:
            # What another system sent of the others has a row only then.
            await self._ahead()
        return await self._queue.take_sent(room, lease, but=but)

    async def on_partitions_revoked(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, revoked: Iterable[Any]
    ) -> None:
        """Others may be brought what was not committed. What was fetched here is claimed all the
        same until it is known who has them: else nothing is while they change hands.
        """
        await self._commit(set(revoked))
        self._found.forget(revoked)
        if self._reader is not None:
            self._reader.forget(revoked)

    async def on_partitions_assigned(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, assigned: Iterable[Any]
    ) -> None:
        """They are read from where they were committed; what others have now is theirs."""
        self._found.own(assigned)

    async def _poll(self, consumer: AIOKafkaConsumer, reader: Reader) -> None:
        while True:
            if not self._found.room:
                with contextlib.suppress(StoreError):
                    await self._ahead()
            room = self._found.room
            if not room:
                consumer.pause(*consumer.assignment())
            elif consumer.paused():
                consumer.resume(*consumer.paused())
            # With no room it only says that somebody is there.
            read = await reader.read(timeout_ms=_POLL_MS if room else 20, most=max(room, 1))
            self._found.add(read)
            if read:
                crash_here("CP21")
            if self._found:
                self._news.set()
            if clock.monotonic_ns() - self._committed_ns > _COMMIT_NS:
                await self._commit(consumer.assignment())

    async def _ahead(self) -> None:
        """Look at what waits for a place, so that nothing waits behind it: of our own calls the
        names are kept, and what others have sent goes into the queue, as long as it may.
        """
        if self._looking.locked():
            return
        async with self._looking:
            whole, poison = self._found.whole, list[Poison]()
            noted, theirs = self._sorted(whole, poison)
            found = await self._foreign(theirs, poison)
            with contextlib.ExitStack() as places:
                fit: dict[str, tuple[Any, Item]] = {}
                full: set[str] = set()
                for name, (one, item) in found.items():
                    # Behind one of its tenant that has to wait, none of it goes on.
                    if item.tenant in full or not places.enter_context(self._place(item.tenant)):
                        full.add(item.tenant)
                    else:
                        fit[name] = (one, item)
                await self._adopted(fit, poison)
            await self._bury(poison)
            waits = {name for name in found if name not in fit}
            left = [one for name in waits for one in theirs[name]]
            left.sort(key=whole.index)
            self._found.sorted(noted, left)
            here = {id(one) for one in left}
            self._found.passed(one for one in whole if id(one) not in here)
        self._woken()

    def _sorted(
        self, whole: Sequence[Any], poison: list[Poison]
    ) -> tuple[Sequence[Noted], Mapping[str, Sequence[Any]]]:
        """Our own, and what others have sent, by name."""
        noted: list[Noted] = []
        theirs: dict[str, list[Any]] = {}
        for one in whole:
            try:
                name = _named(one)
                if self._seal.is_ours(one.headers, one.value):
                    noted.append(Noted(one.topic, one.partition, one.offset, name))
                else:
                    theirs.setdefault(name, []).append(one)
            except Exception as error:  # noqa: BLE001  one message's trouble is not that of the others
                poison.append(_poison(one, error))
        return noted, theirs

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
        for one in taken:
            poison += self._strayed(brought[one.call_id], one.tenant)
        had = {one.call_id for one in taken}
        left = {
            name: found
            for name, found in brought.items()
            if name not in had and not isinstance(found[0], Noted)
        }
        items = await self._adopted(await self._foreign(left, poison), poison)
        if items:
            taken += await self._queue.claim([item.call_id for item in items], lease)
        await self._bury(poison)

    async def _bury(self, poison: Sequence[Poison]) -> None:
        if not poison:
            return
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
                poison += self._strayed(messages, known[name])
                continue
            for one in messages:
                try:
                    # One of ours without a row was over so long ago that nobody keeps it.
                    if self._seal.is_ours(one.headers, one.value):
                        continue
                    item = adopted(one.value, one.headers, self._seal, expires=self._fleet.expires)
                except Exception as error:  # noqa: BLE001  as above
                    poison.append(_poison(one, error))
                    continue
                if found.setdefault(name, (one, item))[1].tenant != item.tenant:
                    poison.append(_poison(one, UnreadableError(TAKEN)))
        return found

    def _strayed(self, messages: Sequence[Any], tenant: str) -> list[Poison]:
        """Those signed for another tenant than the one whose call has their id: who sent them is
        told. What nobody signed is no call, and our own messages are that tenant's.
        """
        found: list[Poison] = []
        for one in messages:
            with contextlib.suppress(Exception):
                if signed(one.value, one.headers, self._seal).caller.tenant != tenant:
                    found.append(_poison(one, UnreadableError(TAKEN)))
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
            # Another worker may have been given the same id for another tenant meanwhile.
            there = await self._shipping.known([item.call_id for item in items])
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  as above
            if len(found) > 1:
                alone = [await self._adopted({name: one}, poison) for name, one in found.items()]
                return [item for there in alone for item in there]
            poison += [_poison(one, error) for one, _ in found.values()]
            return []
        crash_here("CP22")
        own: list[Item] = []
        for one, item in found.values():
            if there.get(item.call_id) == item.tenant:
                own.append(item)
            else:
                poison.append(_poison(one, UnreadableError(TAKEN)))
        return own

    async def _commit(self, places: Iterable[Any]) -> None:
        self._committed_ns = clock.monotonic_ns()
        here = self._assigned()
        due = self._found.due(place for place in places if place in here)
        if not due or self._consumer is None:
            return
        try:
            await self._consumer.commit(dict(due))
        except (KafkaError, OSError, TimeoutError) as error:
            # They are brought again, and known by their rows.
            _log.info("what was claimed is brought again (%s)", type(error).__name__)
            return
        self._found.said(due)

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


def _named(one: Any) -> str:
    if isinstance(one, Noted):
        return one.name
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
    if not isinstance(one, Unread):
        # A topic that is made anew counts from its beginning.
        where = f"{where}@{one.timestamp}"
    # What is no reason of ours may hold a part of the message.
    why = str(error) if isinstance(error, UnreadableError) else type(error).__name__
    return Poison(place=where, content=one.value or b"", why=f"it cannot be read: {why}")
