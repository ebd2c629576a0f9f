"""An operator's word on a call whose end nobody saw: it happened, it did not, or run it again."""

from toolgate.asked import Asked
from toolgate.call import Output
from toolgate.errors import CallNotFound, IdempotencyConflict, InProgress, InvalidRequest
from toolgate.executor.aftercare import recalled
from toolgate.executor.aftercare.probing import Find, Perform
from toolgate.executor.recording.claim import again_key, number_of, reason_of
from toolgate.executor.recording.entries import downstream_key
from toolgate.executor.recording.replay import in_progress
from toolgate.ledger.entry import Entry
from toolgate.ledger.ledger import Ledger, Which
from toolgate.ledger.machine import Recovery
from toolgate.ledger.state import OPEN, State
from toolgate.spec.document import sha256

_MOST_WORDS = 2_000
# Of these nobody knows, or it is known, that they did not do what was asked.
_AGAIN = frozenset({State.UNKNOWN, State.FAILED})
# An attempt that came so far is not made a second time for the same reason.
_STANDS = frozenset({State.SUCCEEDED, State.COMPENSATION_FAILED, State.WAITING})
_BEARS_IT = frozenset({Recovery.AGAIN, Recovery.KEYED})
# So many are counted; whoever has tried that often has other worries.
_MOST_ATTEMPTS = 1_000


class Settling:
    """Every word is on record under a name, with a reason."""

    def __init__(self, ledger: Ledger, perform: Perform, find: Find) -> None:
        self._ledger = ledger
        self._find = find
        self._perform = perform

    async def settle(
        self, tenant: str, call_id: str, *, happened: bool, who: str, why: str
    ) -> Entry:
        """Say of an unknown call what became of it."""
        why = _reason(why)
        entry = await self._found(tenant, call_id)
        if entry.state is not State.UNKNOWN:
            raise _not_unknown(entry)
        if not await self._ledger.settle(entry, happened=happened, who=who, why=why):
            raise _not_unknown(await self._found(tenant, call_id))
        return await self._found(tenant, call_id)

    async def again(self, tenant: str, call_id: str, *, who: str, why: str) -> Output:
        """Run it once more, as a new call of the same caller with a key of its own.

        The gate decides as for any call. The first one stays as it is; both are linked, and the far
        side knows both by one key. Who asks twice for the same reason, since they did not hear the
        first answer, is given that, unless it is known that this attempt did not do it either. One
        whose end is unknown has to be settled before there is another.
        """
        why = _reason(why)
        entry = await self._found(tenant, call_id)
        if entry.state not in _AGAIN:
            raise InvalidRequest(
                f"The call {call_id!r} is {entry.state}; only one that failed, or whose end is "
                "unknown, is run again."
            )
        if entry.undo_of:
            # Under any other key than the undo's own it could happen a second time.
            raise InvalidRequest(
                f"The call {call_id!r} takes {entry.undo_of!r} back. Settle it if it is unknown; "
                f"if it did not happen, undo {entry.undo_of!r} again. Nothing ran."
            )
        args = recalled.whole_args(entry)
        if args is None:
            raise InvalidRequest(
                f"The arguments of call {call_id!r} are not on record as they were: they were too "
                "large, or hold a secret. Call the tool with them instead."
            )
        key = await self._attempt(entry, who, why)
        # Before anything runs: what is done is on record under a name, whatever happens then.
        await self._ledger.note(entry, "call.again", {"state": entry.state}, who=who, why=why)
        first = recalled.asked_of(entry)
        asked = Asked(kind=first.kind, planned=first.planned, again_of=entry.call_id, key=key)
        try:
            return await self._perform(
                entry.tool,
                args,
                caller=recalled.same_caller(entry),
                # Outside its turn, in which it would be the same call.
                turn=None,
                asked=asked,
            )
        except IdempotencyConflict as conflict:
            raise _taken(entry, conflict) from None

    async def _attempt(self, entry: Entry, who: str, why: str) -> str:
        """The key of this attempt; `InProgress` while another one runs."""
        which = Which(tenant=entry.tenant, of=entry.call_id, limit=_MOST_ATTEMPTS)
        before = [one for one in await self._ledger.search(which) if one.again_of]
        running = next((one for one in before if one.state in OPEN), None)
        if running is not None:
            raise in_progress(running)
        reason = sha256(f"{who}\0{why}".encode("utf-8", "backslashreplace"))[7:23]
        numbers = [number for one in before if (number := number_of(one.key)) is not None]
        number = max(numbers, default=-1) + 1
        stands = [one for one in before if one.state in _STANDS or _may_have_happened(one)]
        same = next((one for one in stands if reason_of(one.digest) == reason), None)
        if same is None:
            doubtful = next(filter(_may_have_happened, stands), None)
            if doubtful is not None:
                raise _settle_first(entry, doubtful)
            # Whoever asks for it goes on with what a person was asked about.
            same = next((one for one in stands if one.state is State.WAITING), None)
        if same is not None:
            reason = reason_of(same.digest)
            known = number_of(same.key)
            number = number if known is None else known
        return again_key(downstream_key(entry), entry.call_id, number, reason)

    async def _found(self, tenant: str, call_id: str) -> Entry:
        entry = await self._find(tenant, call_id)
        if entry is None:
            raise CallNotFound(call_id)
        return entry


def _may_have_happened(attempt: Entry) -> bool:
    """Whether another attempt could do a second time what this one did."""
    return attempt.state is State.UNKNOWN and attempt.recovery not in _BEARS_IT


def _settle_first(entry: Entry, attempt: Entry) -> InvalidRequest:
    return InvalidRequest(
        f"The call {entry.call_id!r} was run again as {attempt.call_id!r}, and nobody saw how that "
        f"ended: one more could do it twice. Settle {attempt.call_id!r} first. Nothing ran."
    )


def _taken(entry: Entry, conflict: IdempotencyConflict) -> InProgress:
    return InProgress(
        f"Somebody else has begun to run the call {entry.call_id!r} again, or its tool was changed "
        "since you did. Look at what came of that before you ask once more. Nothing ran.",
        **conflict.details,
    )


def _reason(why: str) -> str:
    why = why.strip()
    if not why or len(why) > _MOST_WORDS:
        raise InvalidRequest(
            f"Say why, in at most {_MOST_WORDS:,} characters: it stands in the audit. "
            "Nothing was changed."
        )
    return why


def _not_unknown(entry: Entry) -> InvalidRequest:
    return InvalidRequest(
        f"The call {entry.call_id!r} is {entry.state}; only one whose end is unknown is settled."
    )
