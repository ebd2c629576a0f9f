"""`/v1/approvals`: what persons are asked, and their word on it."""

from collections.abc import Mapping
from typing import Any

from toolgate.errors import ApprovalNotFound, InvalidRequest
from toolgate.executor.people.desk import told
from toolgate.ledger.approval import Decider, Standing
from toolgate.server.cursor import Whole, made, opened
from toolgate.server.request import Request
from toolgate.server.rights import Right, may
from toolgate.tenancy.keys import Role
from toolgate.tenancy.names import nearest

_ALL = "all"
_STATES: Mapping[str, frozenset[Standing]] = {
    _ALL: frozenset(),
    **{state.value: frozenset({state}) for state in Standing},
}
# When it was asked, and its id.
_Last = tuple[Whole, str]
_FIELDS = {"approve": ("reason", "seen"), "deny": ("reason",)}


async def show_approval(request: Request) -> Any:
    """`GET /v1/approvals/{id}`, with all of its arguments."""
    [id_] = request.names
    found = await request.gate.approvals.find(id_, by=_decider(request))
    if found is None:
        raise ApprovalNotFound
    return told(found, whole=True)


async def approve(request: Request) -> Any:
    """`POST /v1/approvals/{id}/approve` `{reason, seen}`."""
    return await _decided(request, "approve")


async def deny(request: Request) -> Any:
    """`POST /v1/approvals/{id}/deny` `{reason}`."""
    return await _decided(request, "deny")


async def list_approvals(request: Request) -> Any:
    """`GET /v1/approvals?state=&limit=&cursor=&tenant=`."""
    state = request.query.get("state", Standing.WAITING.value)
    if state not in _STATES:
        raise InvalidRequest(f"'state' is one of: {', '.join(_STATES)}.{nearest(state, _STATES)}")
    limit = request.number("limit", default=50, most=1_000)
    last = opened(request, _Last)
    key, whose = request.key, request.caller
    if may(key, Right.APPROVE):
        whose = request.query.get("tenant", "") if key.role is Role.ADMIN else key.tenant
    found = await request.gate.approvals.list(
        whose, states=_STATES[state], limit=limit, before=last
    )
    following = None
    if len(found) == limit:
        following = made(request, [found[-1].created_ns, found[-1].id])
    return {"approvals": [told(one) for one in found], "next": following}


async def _decided(request: Request, verb: str) -> Any:
    [id_] = request.names
    body = await request.body(or_nothing=True)
    for field, value in body.items():
        if field not in _FIELDS[verb] or not isinstance(value, str):
            raise InvalidRequest(
                f"{field[:60]!r} does not fit; {verb!r} takes the texts {', '.join(_FIELDS[verb])}."
            )
    await request.confirm()
    desk, by = request.gate.approvals, _decider(request)
    if await desk.find(id_, by=by) is None:
        raise ApprovalNotFound
    if verb == "approve":
        approval = await desk.approve(
            id_, by=by, reason=body.get("reason", ""), seen=body.get("seen", "")
        )
    else:
        approval = await desk.deny(id_, by=by, reason=body.get("reason", ""))
    return told(approval)


def _decider(request: Request) -> Decider:
    key = request.key
    return Decider(
        who=f"{key.user} ({key.id})" if key.user else key.id,
        is_operator=may(key, Right.APPROVE),
        reach="" if key.role is Role.ADMIN else key.tenant,
        tenant=key.tenant,
        agent=key.agent,
        user=key.user,
    )
