"""A queued side effect that is refused before it began is not over: brought again, it runs once."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.blank import put_blank
from tests.resilience.far import far as far_tool
from tests.servers.postgres import Postgres as Server
from tests.store.kept import TWIN
from tests.store.lent import lent_url
from tests.store.places import FILE, SHARED, open_at
from tests.undo.shop import Shop
from toolgate import Call, Caller, Extension, clock
from toolgate.call import Output, new_call_id
from toolgate.errors import (
    BudgetExceeded,
    CallRefused,
    CircuitOpen,
    OutOfTime,
    Overloaded,
    PermissionDenied,
    ProviderUnavailable,
    ToolError,
    ToolgateError,
)
from toolgate.executor.extension import Priority
from toolgate.executor.recording.remember import Remember
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Journal
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State
from toolgate.queue.message import VERSION, Place, Request
from toolgate.runtime import Runtime
from toolgate.store.journal import TableJournal
from toolgate.testing.history import MemoryHistory
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal
from toolgate.testing.ledger import MemoryLedger

pytestmark = pytest.mark.req("S2", "S3", "P6")
ME = Caller(tenant="acme", agent="billing")
# More than an undo is begun by itself.
TRIES = 12
FOR_NOW = (
    Overloaded("Full."),
    CircuitOpen("Left alone."),
    OutOfTime("Too late."),
    ProviderUnavailable("Away."),
)


@pytest.fixture(params=[TWIN, *SHARED])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Journal]:
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            yield MemoryJournal()
            return
        if request.param == FILE:
            put_blank(tmp_path / "toolgate.db")
            url = f"sqlite:///{tmp_path / 'toolgate.db'}"
        else:
            server: Server = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(server))
        database = open_at(url)
        stack.push_async_callback(database.close)
        yield TableJournal(database)


class Between(Extension):
    """Behind the record, as breaker and bulkhead are; refuses as often as it is told."""

    def __init__(self, *errors: ToolgateError, priority: int = Priority.LOW) -> None:
        self.errors = list(errors)
        self.priority = priority

    def before(self, _call: Call) -> None:
        if self.errors:
            raise self.errors.pop(0)


class Far:
    """A provider that says it did not begin, as often as it is told; then it does."""

    def __init__(self, *errors: ToolgateError) -> None:
        self.errors = list(errors)
        self.ran: list[str] = []

    def unusable(self, spec: Any) -> str | None:
        return None

    def unkeyed(self, spec: Any) -> str | None:
        return None

    async def run(self, call: Call) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        self.ran.append(call.id)
        return "done"


def request_of(call_id: str, group: str = "") -> Request:
    turn = Place(group=group) if group else None
    return Request(version=VERSION, id=call_id, tool="far", args={}, caller=ME, turn=turn)


def new_id() -> str:
    return new_call_id(clock.unix_ns())


def house(journal: Journal, far: Far, *extensions: Extension) -> Any:
    return in_memory(journal=journal, providers={"far": far}, extensions=extensions)


def add(gate: Runtime, **fields: Any) -> None:
    gate.catalog.put("far", [far_tool(**{"effect": "irreversible", **fields})])


async def recorded(journal: Journal) -> Sequence[Entry]:
    await journal.drain()
    return await journal.entries("acme")


@pytest.mark.parametrize("error", FOR_NOW, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("by", ["the house", "its provider"])
async def test_refused_for_now_it_runs_when_it_is_brought_again(
    journal: Journal, error: ToolgateError, by: str
) -> None:
    far = Far(*([error, error] if by == "its provider" else []))
    between = Between(*([error, error] if by == "the house" else []))
    call_id = new_id()
    async with house(journal, far, between) as gate:
        add(gate)
        for _ in range(2):
            with pytest.raises(type(error)):
                await gate.deliveries.run(request_of(call_id))
            (entry,) = await recorded(journal)
            assert (entry.state, entry.error_code) == ("released", error.code)
            assert far.ran == []
        output = await gate.deliveries.run(request_of(call_id))
        assert (output.status, output.call_id, output.cached) == ("success", call_id, False)
        again = await gate.deliveries.run(request_of(call_id))
        assert (again.status, again.cached) == ("success", True)
    assert far.ran == [call_id]
    (entry,) = await recorded(journal)
    assert (entry.state, entry.fence, entry.error_code) == ("succeeded", 3, "")


async def test_called_directly_its_caller_has_the_refusal_and_its_key_back(
    journal: Journal,
) -> None:
    """The control: nobody brings it again, so that this is its end."""
    far = Far()
    async with house(journal, far, Between(Overloaded("Full."))) as gate:
        add(gate)
        with pytest.raises(Overloaded):
            await gate.call("far", caller=ME, idempotency_key="k")
        assert (await gate.call("far", caller=ME, idempotency_key="k")).ok
    assert sorted(entry.state for entry in await recorded(journal)) == ["failed", "succeeded"]


@pytest.mark.parametrize(
    "error",
    [PermissionDenied("No.", phase="policy", reason="no"), BudgetExceeded("Used up.")],
    ids=lambda one: type(one).__name__,
)
async def test_refused_for_good_it_has_ended(journal: Journal, error: ToolgateError) -> None:
    far, call_id = Far(), new_id()
    async with house(journal, far, Between(error)) as gate:
        add(gate)
        with pytest.raises(type(error)):
            await gate.deliveries.run(request_of(call_id))
        assert (await gate.deliveries.run(request_of(call_id))).error is not None
    assert far.ran == []
    assert [entry.state for entry in await recorded(journal)] == ["failed"]


async def test_released_and_then_refused_for_good_it_has_one_end(journal: Journal) -> None:
    far, call_id = Far(), new_id()
    refusing = Between(priority=Priority.HIGH)
    async with house(journal, far, refusing, Between(Overloaded("Full."))) as gate:
        add(gate)
        with pytest.raises(Overloaded):
            await gate.deliveries.run(request_of(call_id))
        refusing.errors.append(PermissionDenied("No.", phase="policy", reason="no"))
        with pytest.raises(PermissionDenied):
            await gate.deliveries.run(request_of(call_id))
    (entry,) = await recorded(journal)
    assert (entry.state, entry.error_code) == ("failed", "permission_denied")


async def test_refused_for_now_before_its_claim_it_leaves_nothing_behind(journal: Journal) -> None:
    far, call_id = Far(), new_id()
    refusing = Between(Overloaded("Full."), priority=Priority.HIGH)
    async with house(journal, far, refusing) as gate:
        add(gate)
        with pytest.raises(Overloaded):
            await gate.deliveries.run(request_of(call_id))
        assert await recorded(journal) == []
        assert (await gate.deliveries.run(request_of(call_id))).ok
    assert [entry.state for entry in await recorded(journal)] == ["succeeded"]


async def test_what_its_tool_says_on_purpose_is_its_answer(journal: Journal) -> None:
    """Also where it could succeed later: trying again is for the tool's `retry`."""
    far, call_id = Far(ToolError("Not now.", retryable=True)), new_id()
    async with house(journal, far) as gate:
        add(gate)
        for _ in range(2):
            output = await gate.deliveries.run(request_of(call_id))
            assert output.error is not None
            assert output.error.message == "Not now."
    assert far.ran == []
    assert [entry.state for entry in await recorded(journal)] == ["failed"]


async def test_an_error_of_its_own_behind_a_release_is_known_not_to_have_happened(
    journal: Journal,
) -> None:
    """A fence of two does not mean that somebody had begun before."""
    far, call_id = Far(Overloaded("Full."), ToolError("No.")), new_id()
    async with house(journal, far) as gate:
        add(gate, downstream_key={"argument": "key"}, input_schema={"type": "object"})
        with pytest.raises(Overloaded):
            await gate.deliveries.run(request_of(call_id))
        output = await gate.deliveries.run(request_of(call_id))
        assert (output.status, output.error.code) == ("error", "tool_error")
    (entry,) = await recorded(journal)
    assert (entry.state, entry.fence) == ("failed", 2)


async def test_a_twin_in_the_same_turn_does_it_and_the_first_has_its_answer(
    journal: Journal,
) -> None:
    far, first, twin = Far(), new_id(), new_id()
    async with house(journal, far, Between(Overloaded("Full."))) as gate:
        add(gate)
        with pytest.raises(Overloaded):
            await gate.deliveries.run(request_of(first, "t1"))
        output = await gate.deliveries.run(request_of(twin, "t1"))
        assert (output.status, output.call_id) == ("success", first)
        answer = await gate.deliveries.run(request_of(first, "t1"))
        assert (answer.status, answer.cached, answer.call_id) == ("success", True, first)
    assert far.ran == [first]


async def test_its_session_does_not_remember_the_attempts_that_did_not_begin() -> None:
    far, history, call_id = Far(Overloaded("Full.")), MemoryHistory(), new_id()
    me = Caller(tenant="acme", agent="billing", session="s")
    request = Request(version=VERSION, id=call_id, tool="far", args={}, caller=me)
    remember = Remember(history, lambda: True)
    async with house(MemoryJournal(), far, remember) as gate:
        add(gate)
        with suppress(CallRefused):
            await gate.deliveries.run(request)
        assert history.calls == {}
        await gate.deliveries.run(request)
    assert [past.state for past in history.calls.values()] == ["succeeded"]


async def test_it_is_charged_once_and_not_for_what_did_not_begin(journal: Journal) -> None:
    far, call_id = Far(Overloaded("Full."), Overloaded("Full.")), new_id()
    async with house(journal, far) as gate:
        add(gate)
        for _ in range(2):
            with pytest.raises(Overloaded):
                await gate.deliveries.run(request_of(call_id))
            assert [line.used for line in await gate.usage.lines(tenant="acme")] == [0]
        await gate.deliveries.run(request_of(call_id))
        assert [line.used for line in await gate.usage.lines(tenant="acme")] == [1]


async def test_those_who_listen_hear_that_it_was_given_back() -> None:
    far, call_id, told = Far(Overloaded("Full.")), new_id(), list[str]()
    async with house(MemoryJournal(), far) as gate:
        add(gate)
        heard = await gate.events("acme").ready()
        with pytest.raises(Overloaded):
            await gate.deliveries.run(request_of(call_id))
        await gate.deliveries.run(request_of(call_id))
        for _ in range(4):
            told.append((await anext(heard)).kind)
    assert told == [f"side_effect.{one}" for one in ("started", "released", "started", "completed")]


async def test_too_late_after_a_release_it_is_on_record_as_such(journal: Journal) -> None:
    far, call_id = Far(Overloaded("Full.")), new_id()
    async with house(journal, far) as gate:
        add(gate)
        with pytest.raises(Overloaded):
            await gate.deliveries.run(request_of(call_id))
        assert await gate.deliveries.expire(request_of(call_id)) is None
    (entry,) = await recorded(journal)
    assert (entry.state, entry.error_code) == ("expired", "out_of_time")
    assert far.ran == []


async def test_too_late_for_what_has_begun_nobody_is_told_that_it_did_not_run(
    journal: Journal,
) -> None:
    class Slow(Far):
        """Somebody finds it too late while it runs."""

        async def run(self, call: Call) -> Any:
            self.told = await gate.deliveries.expire(request_of(call.id))
            return await super().run(call)

    far, call_id = Slow(), new_id()
    async with house(journal, far) as gate:
        add(gate)
        assert (await gate.deliveries.run(request_of(call_id))).ok
        assert far.told is not None
        assert (far.told.status, far.told.error.code) == ("unknown", "outcome_unknown")
        known = await gate.deliveries.expire(request_of(call_id))
        assert (known.status, known.data) == ("success", "done")
    assert [entry.state for entry in await recorded(journal)] == ["succeeded"]


@pytest.mark.req("S4")
async def test_how_often_it_was_given_back_does_not_count_against_its_undo() -> None:
    shop, journal, call_id = Shop(), MemoryJournal(), new_id()
    refusing = Between(*(Overloaded("Full.") for _ in range(TRIES)))
    request = Request(version=VERSION, id=call_id, tool="pay", args={"amount": 5}, caller=ME)
    async with in_memory(*shop.tools(), journal=journal, extensions=[refusing]) as gate:
        for _ in range(TRIES):
            with pytest.raises(Overloaded):
                await gate.deliveries.run(request)
        assert (await gate.deliveries.run(request)).ok
        entry = await journal.find("acme", call_id)
        assert entry is not None
        assert entry.fence == TRIES + 1
        # Somebody began to take it back, and is gone.
        gone = MemoryLedger(MemoryJournal(beside=journal, lease=0.0))
        assert (await gone.undo(entry)).action is Action.COMPENSATE
        await gate.recovery.sweep()
        entry = await journal.find("acme", call_id)
        assert entry is not None
        assert entry.state == "compensated"
    assert shop.effects == [("pay", 5), ("refund", "p5")]


class Door(Extension):
    """Behind the record: holds a call up for ever, or answers in the tool's stead."""

    priority = Priority.LOW

    def __init__(self, answer: Output | None = None) -> None:
        self.reached = asyncio.Event()
        self._answer = answer

    async def before(self, _call: Call) -> Output | None:
        self.reached.set()
        if self._answer is None:
            await asyncio.Event().wait()
        return self._answer


@pytest.mark.parametrize("how", ["its caller goes away", "an extension answers"])
async def test_that_a_second_attempt_did_not_begin_says_nothing_about_the_first(how: str) -> None:
    """Of a call that the far side knows by its key: it may have been done by whoever was lost."""
    far, journal = Far(), MemoryJournal()
    door = Door(None if how == "its caller goes away" else Output(status="success", data="mine"))
    keyed = {"downstream_key": {"argument": "key"}, "input_schema": {"type": "object"}}
    async with house(journal, far) as gate:
        add(gate, **keyed)
        done = await gate.call("far", caller=ME, idempotency_key="k")
    entry = await journal.find("acme", done.call_id)
    assert entry is not None
    journal.put(replace(entry, state=State.STARTED, lease_ns=0, result=b""))
    async with house(journal, far, door) as gate:
        add(gate, **keyed)
        again = asyncio.ensure_future(gate.call("far", caller=ME, idempotency_key="k"))
        await door.reached.wait()
        if how == "its caller goes away":
            again.cancel()
        with suppress(asyncio.CancelledError):
            await again
    assert far.ran == [done.call_id]
    entry = await journal.find("acme", done.call_id)
    assert entry is not None
    assert (entry.state, entry.fence) == ("unknown", 2)
