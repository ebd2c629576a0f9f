"""`/v1/admin/calls…` and `/v1/admin/undo`: what agents did, for whoever looks after it."""

from typing import Annotated, Any

from toolgate.executor.aftercare import shown
from toolgate.ledger.ledger import Which
from toolgate.server.admin.desk import Desk, OfTenant, SignedOfTenant
from toolgate.server.fields import whole
from toolgate.server.ledger import page, read_before, read_states

_MOST = 1_000


class SomeCalls(OfTenant):
    """Which, how many, and from where on."""

    agent: str = ""
    turn_group: str = ""
    chain: str = ""
    tool: str = ""
    state: str = ""
    limit: Annotated[str, whole(_MOST)] = ""
    before: str = ""
    cursor: str = ""


class Settled(SignedOfTenant, kw_only=True):
    """Whether it happened."""

    happened: bool


class Back(SignedOfTenant):
    """What is to be taken back: one of the three."""

    call_id: str | None = None
    turn_group: str | None = None
    chain: str | None = None


async def list_calls(desk: Desk, given: SomeCalls) -> Any:
    """`GET calls?tenant=&agent=&turn_group=&chain=&tool=&state=&limit=&cursor=`."""
    which = Which(
        tenant=desk.need_tenant(),
        agent=given.agent,
        turn_group=given.turn_group,
        chain=given.chain,
        tool=given.tool,
        states=read_states(desk.request.query),
        before=read_before(desk.request),
        limit=desk.request.number("limit", default=100, most=_MOST),
    )
    return page(desk.request, await desk.gate.ledger.search(which), which.limit)


async def show_call(desk: Desk, _: OfTenant) -> Any:
    """`GET calls/{id}?tenant=`, with the calls that ran it again or took it back."""
    tenant, [call_id] = desk.need_tenant(), desk.names
    call = await desk.gate.find(tenant, call_id)
    linked = await desk.gate.ledger.search(call.linked(tenant, call_id))
    return call.shown() | {"linked": [shown.summary(one) for one in linked]}


async def settle(desk: Desk, given: Settled) -> Any:
    """`POST calls/{id}/settle` `{tenant, happened, why}`."""
    tenant, [call_id] = desk.need_tenant(), desk.names
    entry = await desk.gate.settling.settle(
        tenant, call_id, happened=given.happened, who=desk.request.key.id, why=desk.reason
    )
    return shown.summary(entry)


async def again(desk: Desk, _: SignedOfTenant) -> Any:
    """`POST calls/{id}/again` `{tenant, why}`: a new call, with a key of its own."""
    tenant, [call_id] = desk.need_tenant(), desk.names
    output = await desk.gate.settling.again(
        tenant, call_id, who=desk.request.key.id, why=desk.reason
    )
    return output.to_machine()


async def undo(desk: Desk, given: Back) -> Any:
    """`POST undo` `{tenant, call_id | turn_group | chain, why}`, as the agents that did it."""
    report = await desk.gate.undo_for(
        desk.need_tenant(),
        who=desk.request.key.id,
        why=desk.reason,
        call_id=given.call_id,
        turn_group=given.turn_group,
        chain=given.chain,
    )
    return report.to_machine()
