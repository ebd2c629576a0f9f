"""`/v1/admin/queue…`: calls that wait for a worker, and those that no worker could run."""

from typing import Annotated, Any

from toolgate.errors import CallNotFound
from toolgate.executor.aftercare import shown
from toolgate.server.admin.desk import Desk, OfTenant, Signed, SignedOfTenant
from toolgate.server.answers import Page, Shape
from toolgate.server.cursor import made
from toolgate.server.fields import Nothing, whole
from toolgate.server.ledger import read_before

_MOST = 1_000


class SomeDead(OfTenant):
    """Whose, how many, and from where on."""

    limit: Annotated[str, whole(_MOST)] = ""
    before: str = ""
    cursor: str = ""


class QueueDepth(Shape, kw_only=True):
    """How many queued calls there are, and since when the first one that is not over is queued.

    `unheld_ns`: the same of those that no worker holds.
    """

    waiting: int
    sent: int
    taken: int
    dead: int
    oldest_ns: int | None
    unheld_ns: int | None


class DeadCall(Shape, kw_only=True):
    """A call that no worker could run, and why."""

    call_id: str
    tenant: str
    tool: str
    agent: str
    user: str
    attempts: int
    queued_ns: int
    ended_ns: int
    why: str


class DeadCalls(Page, kw_only=True):
    """The newest first."""

    calls: list[DeadCall]


class Retried(Shape, kw_only=True):
    """It waits for a worker again."""

    call_id: str
    stage: str


class Discarded(Shape, kw_only=True):
    """How many are dead no more."""

    discarded: int


async def show_queue(desk: Desk, _: Nothing) -> Any:
    """`GET queue`: how many calls wait, are under way and are dead."""
    return shown.depth(await desk.gate.queue.calls.depth())


async def list_dead(desk: Desk, _: SomeDead) -> Any:
    """`GET queue/dead?tenant=&limit=&cursor=`: calls that no worker could run, the newest first."""
    limit = desk.request.number("limit", default=100, most=_MOST)
    found = await desk.gate.queue.dead.page(
        desk.tenant, before=read_before(desk.request), most=limit
    )
    following = made(desk.request, found[-1].call_id) if len(found) == limit else None
    return {"calls": [shown.dead(one) for one in found], "next": following}


async def retry(desk: Desk, _: SignedOfTenant) -> Any:
    """`POST queue/{id}/retry` `{tenant, why}`: a dead call is tried as if for the first time."""
    tenant, [call_id] = desk.need_tenant(), desk.names
    who, why = desk.request.key.id, desk.reason
    if not await desk.gate.queue.dead.again(tenant, call_id, who=who, why=why):
        raise CallNotFound(call_id, "dead call", shown.NO_SUCH_DEAD)
    return {"call_id": call_id, "stage": "waiting"}


async def discard(desk: Desk, _: SignedOfTenant) -> Any:
    """`POST queue/{id}/discard` `{tenant, why}`: a dead call that nobody wants any more. Without a
    tenant, an admin's key means a message that nobody could read.
    """
    [call_id] = desk.names
    who, why = desk.request.key.id, desk.reason
    if not await desk.gate.queue.dead.discard(desk.tenant, call_id, who=who, why=why):
        raise CallNotFound(call_id, "dead call", shown.NOT_DEAD)
    return {"discarded": 1}


async def discard_unreadable(desk: Desk, _: Signed) -> Any:
    """`POST queue/discard` `{why}`: all messages that nobody could read."""
    who, why = desk.request.key.id, desk.reason
    return {"discarded": await desk.gate.queue.dead.discard_unreadable(who=who, why=why)}
