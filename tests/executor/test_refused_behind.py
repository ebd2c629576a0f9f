"""A refusal behind the tool: it says nothing about whether the effect happened."""

import asyncio
import contextlib
from typing import Any

import pytest

from tests.house import until
from tests.resilience.far import far as far_tool
from toolgate import Call, Caller, Extension, Output, Turn, tool
from toolgate.call import Event
from toolgate.errors import (
    OutOfTime,
    Overloaded,
    PermissionDenied,
    PolicyUnavailable,
    ProviderUnavailable,
    StoreUnavailable,
    ToolgateError,
)
from toolgate.executor.extension import Handler
from toolgate.executor.recording.remember import Remember
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun, Ended, Outdated
from toolgate.runtime import Runtime
from toolgate.testing.history import MemoryHistory
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

ME = Caller(tenant="acme", agent="billing")


class Restless(MemoryJournal):
    """A journal in whose world `inner` can never begin."""

    async def begin(
        self, entry: Entry, *, may_start: bool = True, basis: Basis | None = None
    ) -> Begun:
        if entry.tool == "inner":
            raise Outdated
        return await super().begin(entry, may_start=may_start, basis=basis)


@pytest.mark.req("G8")
async def test_an_attempt_that_was_out_of_date_is_not_in_the_history_of_its_session() -> None:
    """Else a policy that looks back would find a call that was never made."""

    @tool(effect="irreversible")
    async def inner() -> None: ...

    @tool(effect="irreversible")
    async def outer() -> None: ...

    history, me = MemoryHistory(), Caller(tenant="acme", agent="billing", session="s")
    remember = Remember(history, lambda: True)
    async with in_memory(inner, outer, journal=Restless(), extensions=[remember]) as gate:
        with pytest.raises(PolicyUnavailable):
            await gate.call("inner", caller=me)
        assert history.calls == {}
        await gate.call("outer", caller=me)
    assert [past.tool for past in history.calls.values()] == ["outer"], "the positive control"


class Lost(MemoryJournal):
    """A journal whose store takes no claim, and refuses an end only after a while."""

    def __init__(self) -> None:
        super().__init__()
        self.release = asyncio.Event()

    async def begin(
        self,
        entry: Entry,
        *,
        may_start: bool = True,
        basis: Basis | None = None,
    ) -> Begun:
        return await asyncio.Future[Begun]()

    async def end(self, entry: Entry, *, again: bool = False) -> Ended:
        await self.release.wait()
        return await super().end(entry, again=again)


@pytest.mark.req("S3")
async def test_a_call_whose_claim_was_given_up_is_noted_also_when_that_is_known_late() -> None:
    @tool(effect="irreversible", timeout=0.02)
    async def pay() -> None: ...

    journal = Lost()
    async with in_memory(pay, journal=journal) as gate:
        with pytest.raises(StoreUnavailable):
            await gate.call("pay", caller=ME)
        assert journal.calls == [], "nobody knows yet"
        journal.release.set()
        await until(lambda: len(journal.calls) == 1)
    [entry] = journal.calls
    assert (entry.tool, str(entry.state)) == ("pay", "failed")


class Beside(Extension):
    """Makes a call of its own once the tool has run."""

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.house: Runtime | None = None

    def link(self, inner: Handler) -> Handler:
        async def run(call: Call) -> Output:
            output = await inner(call)
            if call.spec.name == "outer":
                assert self.house is not None
                await self.house.call("inner", caller=ME)
            return output

        return run


@pytest.mark.req("S2", "S3")
@pytest.mark.parametrize("priority", [350, 450, 500])
@pytest.mark.parametrize("key", ["k", None])
async def test_a_call_inside_that_could_not_begin_does_not_run_the_outer_one_again(
    priority: int, key: str | None
) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    async def outer() -> None:
        ran.append("outer")

    @tool(effect="irreversible")
    async def inner() -> None:
        ran.append("inner")

    beside, journal = Beside(priority), Restless()
    async with in_memory(outer, inner, journal=journal, extensions=[beside]) as gate:
        beside.house = gate
        with_error: ToolgateError | None = None
        try:
            await gate.call("outer", caller=ME, idempotency_key=key)
        except PolicyUnavailable as error:
            with_error = error
        assert ran == ["outer"]
        if key is not None:
            # In front of the record, it asks for its own once more.
            with contextlib.suppress(PolicyUnavailable):
                again = await gate.call("outer", caller=ME, idempotency_key=key)
                assert again.status == "unknown"
        assert ran == ["outer"]
    states = [str(entry.state) for entry in journal.rows() if entry.tool == "outer"]
    # In front of the record, what it raises is said to the caller; the effect is on record as done.
    assert states == (["succeeded"] if with_error is not None else ["unknown"])


class Own:
    """A provider that refuses, before or behind its effect."""

    def __init__(self, error: ToolgateError) -> None:
        self.ran: list[str] = []
        self._error = error

    def unusable(self, spec: Any) -> str | None:
        return None

    async def run(self, call: Call) -> Any:
        self.ran.append(call.id)
        raise self._error


@pytest.mark.req("S2")
@pytest.mark.parametrize(
    ("error", "state"),
    [
        (PermissionDenied("no", phase="policy", reason="no"), "unknown"),
        (PolicyUnavailable("no"), "unknown"),
        (Overloaded("full"), "failed"),
        (ProviderUnavailable("away"), "failed"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
async def test_only_what_says_that_nothing_was_begun_frees_the_key(
    error: ToolgateError, state: str
) -> None:
    own, journal = Own(error), MemoryJournal()
    async with in_memory(providers={"far": own}, journal=journal) as gate:
        gate.catalog.put("far", [far_tool(effect="irreversible")])
        for _ in range(2):
            with contextlib.suppress(ToolgateError):
                await gate.call("far", caller=ME, idempotency_key="k")
    ends = [str(entry.state) for entry in journal.rows()]
    assert ends == [state] * (1 if state == "unknown" else 2)
    assert len(own.ran) == len(ends)


@pytest.mark.req("X4", "S7")
@pytest.mark.parametrize("at", ["started", "completed"])
async def test_a_turn_that_does_not_listen_holds_nothing_up(at: str) -> None:
    ran: list[str] = []

    @tool(effect="irreversible", timeout=0.05)
    async def pay() -> str:
        ran.append("pay")
        return "paid"

    async def emit(event: Event) -> None:
        if event.kind.endswith(at):
            await asyncio.Event().wait()

    journal = MemoryJournal()
    async with in_memory(pay, journal=journal) as gate:
        paying = gate.call("pay", caller=ME, turn=Turn(group="t", emit=emit))
        if at == "completed":
            assert (await paying).data == "paid", "it is done, and on record"
        else:
            with pytest.raises(OutOfTime):
                await paying
    assert ran == (["pay"] if at == "completed" else [])
    assert [str(entry.state) for entry in journal.rows()] == ["succeeded" if ran else "failed"]
