"""What a person has to agree to runs when they did: that very call, once, and in time."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call, Caller, Grant, Output, Turn, new_call_id
from toolgate.errors import ApprovalDenied, ApprovalPending, ToolgateError
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.people.bus import Bus
from toolgate.executor.people.visible import visible
from toolgate.executor.recording import entries
from toolgate.executor.recording.claim import canonical_args
from toolgate.executor.resilience.deadline import Deadline
from toolgate.ledger.approval import Approval, Approvals, Kind, Requested, Word, event_of, hash_of
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
    ) -> None:
        self._approvals = approvals
        self._always = mode == "always"
        self._ttl_ns = round(ttl * 1e9)
        self._decide = decide
        self._decided = decided or Decided()
        self._bus = bus
        self._redactor = redactor

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
            found, rest = await self._requested(call, raw), inner
            if found.word is Word.WAIT and call.asked.wait_s:
                own_ns = _own_ns(call)
                call, found = await self._waited(call, raw, found.approval)
                now = clock.monotonic_ns()
                call = msgspec.structs.replace(call, began_ns=now, until_ns=now + own_ns)
                rest = Deadline().link(inner)
            approval = found.approval
            if call.id == approval.call_id:
                # That one waits on record. Attempts at it have ids of their own until one begins.
                call = msgspec.structs.replace(call, id=new_call_id(call.started_ns))
            match found.word:
                case Word.ON_RECORD:
                    return await rest(msgspec.structs.replace(call, may_start=False))
                case Word.NO:
                    raise _denied(approval)
                case Word.WAIT:
                    raise _pending(approval)
                case Word.GO:
                    pass
            try:
                return await rest(msgspec.structs.replace(call, approval=approval.id))
            except ToolgateError as error:
                # It is on record under the id that it waited by.
                error.call_id = error.call_id or approval.call_id
                raise

        return run

    async def _waited(self, call: Call, raw: bytes, approval: Approval) -> tuple[Call, Requested]:
        """As long as the caller likes. What was allowed before is decided anew behind it."""
        wait_ns = round((call.asked.wait_s or 0.0) * 1e9)
        until_ns = min(call.until_ns - _LEFT_NS, clock.monotonic_ns() + wait_ns)
        found, pause = Requested(Word.WAIT, approval), _SOON
        while found.word is Word.WAIT and found.approval.id == approval.id:
            left = (until_ns - clock.monotonic_ns()) / 1e9
            if left <= 0:
                return call, found
            await self._decided.wait(approval.id, min(pause, left))
            pause = min(2 * pause, _LATER)
            found = await self._requested(call, raw)
        if found.word is not Word.GO:
            return call, found
        grant = await self._decide()(call.caller, call.spec.name, call.args, call.turn)
        call = msgspec.structs.replace(call, grant=grant)
        return call, await self._requested(call, raw)

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
            ),
            call_id=call.id,
            kind=kind,
            tool=spec.name,
            fingerprint=spec.fingerprint,
            agent=caller.agent,
            user=caller.user,
            # Whole, however long: nobody agrees to what they could not look at.
            args=self._redactor.raw(raw if shown is call.args else orjson.dumps(shown)),
            prompt=spec.confirmation_prompt or f"May {spec.title} run with these arguments?",
            policy_revision=grant.policy_revision,
        )


def _own_ns(call: Call) -> int:
    """The time that the tool has for itself, however long a person takes."""
    extra = round((call.asked.wait_s or 0.0) * 1e9) if call.grant.needs_a_person else 0
    return max(call.until_ns - clock.monotonic_ns() - extra, _LEFT_NS)


def _pending(approval: Approval) -> ApprovalPending:
    who = "approval by a person" if approval.kind is Kind.APPROVAL else "confirmation by the user"
    error = ApprovalPending(
        f"{approval.tool!r} needs {who}, who has been asked. Nothing ran: make the same call again "
        "once it was given.",
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


def _denied(approval: Approval) -> ApprovalDenied:
    why = f": {visible(approval.reason)}" if approval.reason else ""
    return ApprovalDenied(
        f"A person said no to this call of {approval.tool!r}{why}. Nothing ran: do without it, or "
        "ask for something else.",
        approval_id=approval.id,
        call_id=approval.call_id,
    )
