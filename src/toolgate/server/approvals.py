"""`/v1/approvals`: what persons are asked, and their word on it."""

from collections.abc import Mapping
from typing import Any

from toolgate.errors import InvalidRequest
from toolgate.executor.people.desk import told
from toolgate.ledger.approval import Decider, Standing
from toolgate.server.body import Receive, read_object
from toolgate.server.request import Request
from toolgate.tenancy.keys import Role
from toolgate.tenancy.names import nearest

PREFIX = "/v1/approvals"
_ALL = "all"
_STATES: Mapping[str, frozenset[Standing]] = {
    _ALL: frozenset(),
    **{state.value: frozenset({state}) for state in Standing},
}
_FIELDS = {"approve": ("reason", "seen"), "deny": ("reason",)}


def methods(parts: list[str]) -> str:
    """What can be asked of this path; nothing where there is none."""
    match parts:
        case [] | [_]:
            return "GET"
        case [_, verb] if verb in _FIELDS:
            return "POST"
        case _:
            return ""


async def answer(request: Request, parts: list[str], receive: Receive) -> Any:
    """The list, one of them, or one that is decided; `None`: there is no such one for this key."""
    match parts:
        case []:
            return await _listed(request)
        case [id_]:
            request.takes()
            found = await request.gate.approvals.find(id_, by=_decider(request))
            return None if found is None else told(found, whole=True)
        case [id_, verb]:
            return await _decided(request, id_, verb, receive)
        case _:
            return None


async def _listed(request: Request) -> Any:
    request.takes("state", "limit", "tenant")
    state = request.query.get("state", Standing.WAITING.value)
    if state not in _STATES:
        raise InvalidRequest(f"'state' is one of: {', '.join(_STATES)}.{nearest(state, _STATES)}")
    limit = request.number("limit", default=50, most=1_000)
    key, whose = request.key, request.caller
    if key.role is not Role.AGENT:
        whose = request.query.get("tenant", "") if key.role is Role.ADMIN else key.tenant
    found = await request.gate.approvals.list(whose, states=_STATES[state], limit=limit)
    return {"approvals": [told(one) for one in found]}


async def _decided(request: Request, id_: str, verb: str, receive: Receive) -> Any:
    request.takes()
    body = await read_object(receive, or_nothing=True)
    for field, value in body.items():
        if field not in _FIELDS[verb] or not isinstance(value, str):
            raise InvalidRequest(
                f"{field[:60]!r} does not fit; {verb!r} takes the texts {', '.join(_FIELDS[verb])}."
            )
    await request.confirm()
    desk, by = request.gate.approvals, _decider(request)
    if await desk.find(id_, by=by) is None:
        return None
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
        is_operator=key.role is not Role.AGENT,
        reach="" if key.role is Role.ADMIN else key.tenant,
        tenant=key.tenant,
        agent=key.agent,
        user=key.user,
    )
