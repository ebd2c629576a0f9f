"""Taking back what was done: in reverse order, once each, as far as it can be and may be today.

First all effects that are to be taken back are marked, the latest one first; then each one's
compensation is called, as a call of its own. Whoever finds marks that were left goes on from there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolgate.asked import Asked
from toolgate.call import Grant, Turn
from toolgate.caller import Caller
from toolgate.crash import crash_here
from toolgate.errors import (
    CallNotFound,
    CallRefused,
    InvalidRequest,
    StoreError,
    StoreUnavailable,
    ToolgateError,
)
from toolgate.executor.aftercare import recalled
from toolgate.executor.aftercare.outcome import impossible, item, not_begun, outcome, refusal
from toolgate.executor.aftercare.planned import Plan, planned
from toolgate.executor.aftercare.probing import Find, Perform, Probing, SpecOf
from toolgate.executor.aftercare.report import Item, Report, Result
from toolgate.executor.recording.late import Late
from toolgate.ledger.entry import Entry
from toolgate.ledger.history import owner_of
from toolgate.ledger.journal import Journal
from toolgate.ledger.ledger import Ledger, Which, owner_in
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State

log = logging.getLogger("toolgate.undo")
Decide = Callable[[Caller, str, dict[str, Any], Turn | None], Awaitable[Grant]]
_PAGE = 200
# How often an undo is begun whose process is gone each time.
_MOST_TRIES = 10
# How long the end of an undo holds up whoever has stopped waiting for it.
_PATIENCE = 1.0
# How long the store may take to say what there is to take back.
_STORE_SECONDS = 5.0
T = TypeVar("T")
_REFUSED = "call.undo_refused"


class Asker(NamedTuple):
    """Who wants it taken back, and why, for the audit. Without a name, it is the caller itself."""

    who: str = ""
    why: str = ""


class Marked(NamedTuple):
    """An effect that is ours to take back."""

    entry: Entry
    plan: Plan
    caller: Caller
    # An earlier attempt may have taken it back without anybody having heard of it.
    anew: bool = False


class Undo:
    """Takes back a call, a turn group or a chain."""

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        *,
        perform: Perform,
        decide: Decide,
        spec_of: SpecOf,
        probing: Probing,
        find: Find,
    ) -> None:
        self._ledger = ledger
        self._journal = journal
        self._perform = perform
        self._decide = decide
        self._spec_of = spec_of
        self._probing = probing
        self._find = find
        self._late = Late()

    async def named(
        self,
        caller: Caller,
        by: Asker,
        *,
        call_id: str | None,
        turn_group: str | None,
        chain: str | None,
    ) -> Report:
        """What one of the three names; `InvalidRequest` where none does, or more than one."""
        given = [one for one in (call_id, turn_group, chain) if one is not None]
        if len(given) != 1 or type(given[0]) is not str or not given[0]:
            raise InvalidRequest(
                "Name what is to be taken back by one of them: a call_id, a turn_group or a chain."
            )
        if call_id is not None:
            return await self._single(caller, call_id, by)
        return await self._group(caller, turn_group or "", chain or "", by)

    async def resume(self, entry: Entry, *, stops: Callable[[], bool] = lambda: False) -> None:
        """Go on with an undo whose process is gone, and with what it had marked before this one.

        `stops`: whether the next one is left to others.
        """
        latest: Entry | None = await self._latest(entry)
        while latest is not None and not stops() and await self._resumed(latest):
            latest = await self._latest(entry)

    async def _single(self, caller: Caller, call_id: str, by: Asker) -> Report:
        """One call; `CallNotFound` where the caller has none of this id."""
        entry = await _in_time(self._find(caller.tenant, call_id))
        if entry is None or not (by.who or recalled.is_of(entry, caller)):
            raise CallNotFound(call_id)
        return await self._taken_back([entry], caller, by)

    async def _group(self, caller: Caller, turn_group: str, chain: str, by: Asker) -> Report:
        """All that the caller did in a turn group, or in a chain; an operator means everybody's.

        `CallNotFound` where that is nothing: a typo must not look as if all was well.
        """
        scope = "" if by.who else owner_of(caller)
        which = Which(
            tenant=caller.tenant, turn_group=turn_group, chain=chain, scope=scope, limit=_PAGE
        )
        found = [one for one in await _in_time(self._all(which)) if not one.undo_of]
        if not found:
            raise _nothing(turn_group, chain)
        return await self._taken_back(found, caller, by)

    async def _resumed(self, entry: Entry) -> bool:
        """Whether it was ours to go on with."""
        begun = await self._ledger.take(entry)
        if begun.action is not Action.COMPENSATE:
            return False
        entry = begun.entry
        try:
            plan = planned(entry, self._spec_of)
            if isinstance(plan, str) or entry.fence - plan.fence > _MOST_TRIES:
                why = plan if isinstance(plan, str) else "It was begun too often and never ended."
                await self._ledger.undone(entry, done=False, why=why)
                return True
            await self._compensated(Marked(entry, plan, recalled.caller_of(entry), anew=True))
        except InvalidRequest as error:
            await self._ledger.undone(entry, done=False, why=error.message)
        finally:
            self._ledger.let_go(entry)
        return True

    async def _all(self, which: Which) -> list[Entry]:
        found: list[Entry] = []
        while True:
            page = await self._ledger.search(which)
            found += page
            if len(page) < which.limit:
                return found
            which = msgspec.structs.replace(which, before=page[-1].call_id)

    async def _taken_back(self, entries: Iterable[Entry], caller: Caller, by: Asker) -> Report:
        latest_first = sorted(
            entries, key=lambda one: (one.started_ns, one.chain_index, one.call_id), reverse=True
        )
        todo: list[Marked | Item] = []
        items: list[Item] = []
        try:
            for entry in latest_first:
                todo.append(await self._marked(entry, caller, by))  # noqa: PERF401  those before it count
            for one in todo:
                if isinstance(one, Item):
                    items.append(one)
                    continue
                items.append(await self._compensated(one))
                crash_here("CP10")
        finally:
            # What was marked and not come to is gone on with by whoever looks after lost calls.
            for one in todo:
                if isinstance(one, Marked):
                    self._ledger.let_go(one.entry)
        return Report(items=tuple(items))

    async def _marked(self, entry: Entry, caller: Caller, by: Asker) -> Marked | Item:
        """Ours to take back from now on, or why not. What is refused stays as it is."""
        if entry.state is State.COMPENSATED:
            return await self._done_before(entry)
        if entry.state is State.UNKNOWN:
            entry = await self._probed(entry)
        why_not = impossible(entry)
        if why_not is not None:
            return why_not
        plan = planned(entry, self._spec_of)
        if isinstance(plan, str):
            return item(entry, "cannot", plan)
        try:
            if by.who:
                caller = recalled.caller_of(entry)
            await self._decide(caller, plan.tool, plan.args, recalled.turn_of(entry))
        except CallRefused as error:
            if by.who:
                # Of a tool that is gone there is no decision that would tell of it.
                told = {"compensation": plan.tool, "code": error.code}
                await self._ledger.note(entry, _REFUSED, told, who=by.who, why=by.why)
            return item(entry, "refused", error.message)
        begun = await self._ledger.undo(entry, who=by.who, why=by.why)
        if begun.action is Action.COMPENSATE:
            first = entry.state is State.SUCCEEDED and begun.entry.fence == entry.fence + 1
            return Marked(begun.entry, plan, caller, anew=not first)
        if begun.action is Action.REPLAY:
            return await self._done_before(entry)
        return not_begun(entry, begun)

    async def _done_before(self, entry: Entry) -> Item:
        plan = planned(entry, self._spec_of)
        done = await self._undo_of(entry, "" if isinstance(plan, str) else plan.tool)
        return item(entry, "already_undone", undo_call_id=done, stands=False)

    async def _undo_of(self, entry: Entry, tool: str) -> str:
        """The call that took it back; empty where none is known to have."""
        which = Which(
            tenant=entry.tenant,
            tool=tool,
            of=entry.call_id,
            since_ns=entry.started_ns,
            states=frozenset({State.SUCCEEDED}),
            limit=10,
        )
        done = (one.call_id for one in await self._ledger.search(which) if one.undo_of)
        return next(done, "")

    async def _probed(self, entry: Entry) -> Entry:
        """An unknown one, as its probe knows it."""
        if not self._probing.has_probe(entry):
            return entry
        told = await self._probing.ask(entry)
        if told.happened is None:
            return entry
        await self._journal.end(self._probing.ended(entry, told))
        return await self._ledger.find(entry.tenant, entry.call_id) or entry

    async def _compensated(self, marked: Marked) -> Item:
        """Call the compensation, and say how it ended.

        Whoever stops waiting for it cannot tell: it stays marked, and is gone on with.
        """
        entry, plan, caller, anew = marked
        try:
            done = await self._undo_of(entry, plan.tool) if anew else ""
            if done:
                await self._ended(entry, "undone", "")
                return item(entry, "undone", undo_call_id=done, stands=False)
            output = await self._perform(
                plan.tool,
                plan.args,
                caller=caller,
                turn=recalled.turn_of(entry),
                asked=Asked(undo_of=entry.call_id),
            )
        except StoreError as error:
            away = await self._late.finish(self._ended(entry, "failed", error.message), _PATIENCE)
            if away is None:
                return item(entry, "failed", error.message)
            # What is marked and not ended is looked after as soon as the store is back.
            return item(entry, "in_progress", "The store went away; it is gone on with later.")
        except ToolgateError as error:
            result = refusal(error)
            await self._ended(entry, result, error.message)
            return item(entry, result, error.message)
        became = outcome(entry, output)
        await self._ended(entry, became.result, became.reason)
        return became

    async def _ended(self, entry: Entry, result: Result, why: str) -> None:
        held = await self._ledger.undone(entry, done=result == "undone", why=why)
        if not held:
            log.warning("the undo of call %s was given up as lost by others", entry.call_id)

    async def _latest(self, entry: Entry) -> Entry | None:
        """What is to be taken back next, of the same owner's turn group or chain."""
        if not (entry.turn_group or entry.chain):
            found = await self._ledger.find(entry.tenant, entry.call_id)
            return found if found is not None and found.state is State.COMPENSATING else None
        which = Which(
            tenant=entry.tenant,
            turn_group=entry.turn_group,
            chain="" if entry.turn_group else entry.chain,
            scope=owner_in(entry.scope),
            states=frozenset({State.COMPENSATING}),
            limit=1,
        )
        return next(iter(await self._ledger.search(which)), None)


async def _in_time(looking: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_STORE_SECONDS):
            return await looking
    except TimeoutError:
        raise StoreUnavailable(
            "The store does not answer, so nothing was taken back. Try again when it is back."
        ) from None


def _nothing(turn_group: str, chain: str) -> CallNotFound:
    if turn_group:
        return CallNotFound(turn_group, "turn group with side effects")
    return CallNotFound(
        chain,
        "chain with side effects",
        "Steps that were answered from the record (`cached`) belong to the chain that ran them "
        "first: take them back by their call_id.",
    )
