"""What a person has to agree to runs when they did: that very call, once, and in time."""

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call, Grant, Output, Turn, new_call_id
from toolgate.caller import Caller
from toolgate.errors import (
    ApprovalDenied,
    ApprovalPending,
    InvalidRequest,
    Overloaded,
    ToolgateError,
)
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.people import presence
from toolgate.executor.people.bus import Bus
from toolgate.executor.people.visible import visible
from toolgate.executor.recording import entries
from toolgate.executor.recording.claim import canonical_args
from toolgate.executor.resilience.deadline import Deadline
from toolgate.ledger.approval import (
    Approval,
    Approvals,
    Kind,
    Requested,
    Standing,
    Word,
    event_of,
    hash_of,
)
from toolgate.ledger.history import owner_of
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.spec.secret import without_secrets

Mode = Literal["never", "unsafe_only", "always"]
# The gate, asked once more: what was allowed when somebody was asked may not be any longer.
Decide = Callable[[Caller, str, dict[str, Any], Turn | None], Awaitable[Grant]]
# How soon a decision by another process is seen: at first, and after a while.
_SOON = 0.05
_LATER = 0.5
# Before its deadline, so that a call that waits is told what it waits for.
_LEFT_NS = 200_000_000
# How many calls of this process wait for a person at a time: of one tenant, and of all.
_MOST_OF_TENANT = 64
_MOST_WAITING = 256
# What a person is asked to look at, in bytes.
_MOST_ARGS = 128 * 1024


class Decided:
    """Wakes calls in this process that wait for a person."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def wake(self, approval_id: str) -> None:
        """It was decided."""
        for one in self._waiting.get(approval_id, ()):
            one.set()

    async def wait(self, approval_id: str, seconds: float) -> None:
        """Until it is decided here, or so long."""
        woken = asyncio.Event()
        here = self._waiting.setdefault(approval_id, set())
        here.add(woken)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await woken.wait()
        finally:
            here.discard(woken)
            if not here:
                self._waiting.pop(approval_id, None)


class Ask(Extension):
    """Asks for a person where one is needed; nobody else's word, and no silence, counts as a yes.

    `mode`: `unsafe_only` asks as the gate says, `always` for every call. `ttl` is in seconds.
    """

    priority = 300

    def __init__(
        self,
        approvals: Approvals,
        *,
        mode: Mode = "unsafe_only",
        ttl: float = 3_600.0,
        decide: Callable[[], Decide],
        decided: Decided | None = None,
        bus: Bus | None = None,
        redactor: Redactor = PLAIN,
        recorded: set[str] | None = None,
    ) -> None:
        """`recorded` is told the ids of calls that are on record already."""
        self._approvals = approvals
        self._recorded = recorded
        self._always = mode == "always"
        self._ttl_ns = round(ttl * 1e9)
        self._decide = decide
        self._decided = decided or Decided()
        self._bus = bus
        self._redactor = redactor
        self._waiting = Counter[str]()

    def link(self, inner: Handler) -> Handler:
        """A tool that is not marked passes by."""
        always, asked = self._always, self._asked(inner)

        # Not a coroutine of its own: a call that needs nobody does not pay for one.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            if not (always or call.grant.needs_a_person) or call.approval:
                return inner(call)
            return asked(call)

        return run

    def _asked(self, inner: Handler) -> Handler:
        async def run(call: Call) -> Output:
            call, raw = entries.settled(call)
            found = await self._requested(call, raw)
            if found.word is not Word.WAIT or not (call.asked.wait_s and self._has_room(call)):
                return await _gone_on(inner, call, found)
            try:
                waited = await self._waited(call, raw, found.approval)
                return await _gone_on(Deadline().link(inner), *waited)
            except BaseException:
                if found.approval.call_id == call.id and self._recorded is not None:
                    # It waits on record, or is there as what became of it.
                    self._recorded.add(call.id)
                raise

        return run

    def _has_room(self, call: Call) -> bool:
        """Whether one more may wait. Who may not is told at once that nobody has decided yet."""
        tenant = call.caller.tenant
        return self._waiting[tenant] < _MOST_OF_TENANT and self._waiting.total() < _MOST_WAITING

    async def _waited(self, call: Call, raw: bytes, approval: Approval) -> tuple[Call, Requested]:
        """As long as the caller likes. What was allowed before is decided anew behind it."""
        tenant, own_ns = call.caller.tenant, _own_ns(call)
        if call.hold is not None:
            call.hold.let_go()
        self._waiting[tenant] += 1
        try:
            found = await self._heard(call, raw, approval)
        finally:
            self._waiting[tenant] -= 1
            if not self._waiting[tenant]:
                del self._waiting[tenant]
        if found.word is Word.GO:
            grant = await self._decide()(call.caller, call.spec.name, call.args, call.turn)
            call = msgspec.structs.replace(call, grant=grant)
            found = await self._requested(call, raw)
        if call.hold is not None and found.word in {Word.GO, Word.ON_RECORD}:
            call = await call.hold.again(call)
        now = clock.monotonic_ns()
        # Of a queued one the tool's own time is the worker's; here it is waited for, all in all.
        until_ns = call.until_ns if call.is_handed_on else now + own_ns
        return msgspec.structs.replace(call, began_ns=now, until_ns=until_ns), found

    async def _heard(self, call: Call, raw: bytes, approval: Approval) -> Requested:
        """What was decided, or that nothing was in time. Looking does not write."""
        wait_ns = round((call.asked.wait_s or 0.0) * 1e9)
        until_ns = min(call.until_ns - _LEFT_NS, clock.monotonic_ns() + wait_ns)
        found, pause = Requested(Word.WAIT, approval), _SOON
        while found.word is Word.WAIT and found.approval.id == approval.id:
            left = (until_ns - clock.monotonic_ns()) / 1e9
            if left <= 0 or presence.has_left():
                break
            await self._decided.wait(approval.id, min(pause, left))
            pause = min(2 * pause, _LATER)
            if await self._approvals.stands(approval.tenant, approval.id) is not Standing.WAITING:
                found = await self._requested(call, raw)
        return found

    async def _requested(self, call: Call, raw: bytes) -> Requested:
        wanted = self._wanted(call, raw)
        intent = entries.intent(call, raw, self._redactor)
        found = await self._approvals.request(wanted, intent, self._ttl_ns)
        if found.is_new and self._bus is not None:
            event = event_of(found.approval, "requested", clock.unix_ns())
            await self._bus.publish(event, call.turn)
        return found

    def _wanted(self, call: Call, raw: bytes) -> Approval:
        caller, spec, grant = call.caller, call.spec, call.grant
        shown = without_secrets(spec.input_schema.raw, call.args)
        # Whole, however long it may be: nobody agrees to what they could not look at.
        args = self._redactor.raw(raw if shown is call.args else orjson.dumps(shown))
        if len(args) > _MOST_ARGS:
            raise InvalidRequest(
                f"A person has to agree to this call of {spec.name!r}, and nobody can look at "
                f"arguments of more than {_MOST_ARGS:,} bytes. Nothing ran: send less."
            )
        only_confirmed = grant.needs_a_person and not grant.needs_another
        kind = Kind.CONFIRMATION if only_confirmed else Kind.APPROVAL
        return Approval(
            id=f"apr_{secrets.token_hex(12)}",
            tenant=caller.tenant,
            hash=hash_of(
                tool=spec.name,
                fingerprint=spec.fingerprint,
                args=canonical_args(raw),
                tenant=caller.tenant,
                requester=(owner_of(caller), caller.agent, caller.user),
                policy_revision=grant.policy_revision,
                kind=kind,
                of=(call.asked.undo_of, call.asked.again_of),
            ),
            call_id=call.id,
            kind=kind,
            tool=spec.name,
            fingerprint=spec.fingerprint,
            agent=caller.agent,
            user=caller.user,
            args=args,
            prompt=spec.confirmation_prompt or f"May {spec.title} run with these arguments?",
            policy_revision=grant.policy_revision,
        )


async def _gone_on(rest: Handler, call: Call, found: Requested) -> Output:
    """As a person said, or as it is on record."""
    approval = found.approval
    if call.id == approval.call_id:
        # That one waits on record. Attempts at it have ids of their own until one begins.
        new_id = new_call_id(call.started_ns)
        call = msgspec.structs.replace(call, id=new_id, came_as=call.id)
    match found.word:
        case Word.ON_RECORD:
            return await rest(msgspec.structs.replace(call, may_start=False))
        case Word.NO:
            raise _denied(approval)
        case Word.WAIT:
            raise _pending(approval)
        case Word.FULL:
            raise _full(approval)
        case Word.GO:
            pass
    try:
        return await rest(msgspec.structs.replace(call, approval=approval.id))
    except ToolgateError as error:
        # It is on record under the id that it waited by.
        error.call_id = error.call_id or approval.call_id
        error.began_ns = call.began_ns
        raise


def _own_ns(call: Call) -> int:
    """The time that the tool has for itself, however long a person takes."""
    extra = round((call.asked.wait_s or 0.0) * 1e9) if call.grant.needs_a_person else 0
    return max(call.until_ns - clock.monotonic_ns() - extra, _LEFT_NS)


def _pending(approval: Approval) -> ApprovalPending:
    who = "approval by a person" if approval.kind is Kind.APPROVAL else "confirmation by the user"
    error = ApprovalPending(
        f"{approval.tool!r} needs {who}. Nothing ran: it waits on the list of approvals. Make the "
        "same call again once it was given.",
        approval_id=approval.id,
        kind=str(approval.kind),
        expires_at=datetime.fromtimestamp(approval.expires_ns / 1e9, UTC).isoformat(
            timespec="seconds"
        ),
        prompt=visible(approval.prompt),
        where={
            "command": f"toolgate approvals approve {approval.id}",
            "http": f"POST /v1/approvals/{approval.id}/approve",
        },
    )
    error.call_id = approval.call_id
    return error


def _full(approval: Approval) -> Overloaded:
    return Overloaded(
        f"So many calls wait for a person already that nobody is asked about this one of "
        f"{approval.tool!r}. Nothing ran: try again when some of them were decided.",
        retry_after=60,
    )


def _denied(approval: Approval) -> ApprovalDenied:
    why = f": {visible(approval.reason)}" if approval.reason else ""
    return ApprovalDenied(
        f"A person said no to this call of {approval.tool!r}{why}. Nothing ran: do without it, or "
        "ask for something else.",
        approval_id=approval.id,
        call_id=approval.call_id,
    )
