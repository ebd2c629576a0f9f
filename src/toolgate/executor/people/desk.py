"""Where a person decides. Nothing but these verbs is a yes: no message, no silence, no second call.

An approval is decided by an operator who is not the requester. A confirmation can also be given by
the user that the agent acts for; never by the agent alone.
"""

from collections.abc import Sequence
from typing import Any

from toolgate import clock
from toolgate.caller import Caller
from toolgate.crash import crash_here
from toolgate.errors import ApprovalNotFound, InvalidRequest, PermissionDenied
from toolgate.executor.people.approval import Decided
from toolgate.executor.people.bus import Bus
from toolgate.executor.people.visible import shown, visible
from toolgate.ledger.approval import (
    Approval,
    Approvals,
    Decider,
    Some,
    Standing,
    event_of,
    refusal,
    sees,
    standing,
)
from toolgate.tenancy.names import words

# Longer arguments are not shown in a list; whoever agrees to them has looked at them whole.
MOST_SHOWN = 2_000
_MOST_LISTED = 1_000
_WAITING = frozenset({Standing.WAITING})
_MOST_WHO = 200


class Desk:
    """The approvals of this house, for persons."""

    def __init__(self, approvals: Approvals, *, decided: Decided, bus: Bus | None = None) -> None:
        self._approvals = approvals
        self._decided = decided
        self._bus = bus

    async def list(
        self,
        whose: Caller | str = "",
        *,
        states: frozenset[Standing] = _WAITING,
        limit: int = 50,
        before: tuple[int, str] | None = None,
    ) -> Sequence[Approval]:
        """Those of a tenant (by its name; empty means all), or those of a caller's own user.

        Those that wait, unless other states are named; the newest first, from behind `before` on.
        """
        if not 1 <= limit <= _MOST_LISTED:
            raise InvalidRequest(f"The limit is a number from 1 to {_MOST_LISTED:,}.")
        if isinstance(whose, str):
            some = Some(tenant=whose, states=states, limit=limit, before=before)
        else:
            agent = None if whose.user else whose.agent
            some = Some(
                tenant=whose.tenant,
                agent=agent,
                user=whose.user,
                states=states,
                limit=limit,
                before=before,
            )
        return await self._approvals.search(some)

    async def find(self, id_: str, *, by: str | Caller | Decider) -> Approval | None:
        """One, if it is for their eyes."""
        who = _decider(by)
        found = await self._approvals.find(who.reach, id_)
        return found if found is not None and sees(found, who) else None

    async def approve(
        self,
        id_: str,
        *,
        by: str | Caller | Decider,
        reason: str = "",
        seen: str = "",
    ) -> Approval:
        """Agree to this very call, once, until it expires.

        `by` is an operator's name, or a Caller: the user that the agent acts for. Arguments that
        are too long for a list have to be looked at whole; `seen` is the code shown with them.
        """
        approval = await self._decidable(id_, _decider(by))
        if seen and seen != code_of(approval):
            raise InvalidRequest(
                f"{seen[:40]!r} is not the code that is shown with these arguments: look at them "
                f"with `toolgate approvals show {approval.id}`. Nothing was approved."
            )
        length = len(shown(approval.args))
        if length > MOST_SHOWN and not seen:
            raise InvalidRequest(
                f"The arguments have {length:,} characters, and were not looked at whole: "
                f"`toolgate approvals show {approval.id}` shows them with a code; give it as "
                "`seen`. Nothing was approved."
            )
        decided = await self._decide(approval, _decider(by), reason, approved=True)
        crash_here("CP12")
        return decided

    async def deny(self, id_: str, *, by: str | Caller | Decider, reason: str = "") -> Approval:
        """Say no: the same call is refused until this would have expired."""
        approval = await self._decidable(id_, _decider(by))
        return await self._decide(approval, _decider(by), reason, approved=False)

    async def _decidable(self, id_: str, by: Decider) -> Approval:
        approval = await self.find(id_, by=by)
        if approval is None:
            raise ApprovalNotFound
        said = refusal(approval, by)
        if said:
            raise PermissionDenied(f"{said} Nothing was decided.", phase="approval", reason=said)
        return approval

    async def _decide(
        self, approval: Approval, by: Decider, reason: str, *, approved: bool
    ) -> Approval:
        why = words("reason", reason)
        decided = await self._approvals.decide(approval, approved=approved, who=by.who, why=why)
        if decided is None:
            raise _too_late(await self._approvals.find(by.reach, approval.id) or approval)
        self._decided.wake(decided.id)
        if self._bus is not None:
            await self._bus.publish(event_of(decided, str(decided.state), clock.unix_ns()))
        return decided


def told(approval: Approval, *, whole: bool = False) -> dict[str, Any]:
    """An approval as every door shows it: no secrets, and nothing in it that hides.

    With `whole`, all of the arguments and the code that says they were shown.
    """
    args = shown(approval.args)
    is_cut = len(args) > MOST_SHOWN and not whole
    seen: dict[str, Any] = {"seen": code_of(approval)} if whole else {}
    return {
        "id": approval.id,
        "kind": str(approval.kind),
        "state": str(standing(approval, clock.unix_ns())),
        "tenant": approval.tenant,
        "agent": approval.agent,
        "user": visible(approval.user),
        "tool": approval.tool,
        "fingerprint": approval.fingerprint,
        "prompt": visible(approval.prompt),
        "args": args[:MOST_SHOWN] if is_cut else args,
        "args_length": len(args),
        "is_cut": is_cut,
        **seen,
        "call_id": approval.call_id,
        "created_ns": approval.created_ns,
        "expires_ns": approval.expires_ns,
        "decided_ns": approval.decided_ns,
        "decided_by": visible(approval.decided_by),
        "reason": visible(approval.reason),
    }


def code_of(approval: Approval) -> str:
    """Shown with the whole arguments, and nowhere else."""
    return approval.hash.removeprefix("sha256:")[:12]


def _decider(by: str | Caller | Decider) -> Decider:
    if isinstance(by, Decider):
        return by
    if isinstance(by, Caller):
        return Decider(
            who=by.user or by.agent,
            is_operator=False,
            reach=by.tenant,
            tenant=by.tenant,
            agent=by.agent,
            user=by.user,
        )
    if not isinstance(by, str) or not by.strip() or len(by) > _MOST_WHO:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(
            f"Say who decides, in at most {_MOST_WHO} characters: by='ann'. Nothing was decided."
        )
    # Whoever sits at this machine is the person of that name.
    return Decider(
        who=words("name of who decides", by), is_operator=True, user=by.removeprefix("cli:")
    )


def _too_late(approval: Approval) -> InvalidRequest:
    now = standing(approval, clock.unix_ns())
    if now is Standing.WAITING:
        now = Standing.EXPIRED
    by = f" by {visible(approval.decided_by)}" if approval.decided_by else ""
    return InvalidRequest(
        f"The approval {approval.id} does not wait any more: it is {now}{by}. Nothing was decided.",
        state=str(now),
    )
