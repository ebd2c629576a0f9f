"""`/v1/admin/audit/…`: anchors, the proof of the audit, and an export for others to verify."""

from typing import Annotated, Any

import msgspec

from toolgate.server.admin.desk import Desk, OfTenant
from toolgate.server.answers import Page, Shape
from toolgate.server.cursor import made, opened
from toolgate.server.fields import whole
from toolgate.server.hangup import while_there
from toolgate.tenancy.audit import Mark

_MOST = 1_000
_Anchor = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,18}:[0-9a-f]{64}$")]


class Kept(OfTenant):
    """Anchors that were kept elsewhere."""

    anchors: Annotated[tuple[_Anchor, ...], msgspec.Meta(max_length=_MOST)] = ()


class SomeLines(OfTenant):
    """Of whom, how many, and from where on."""

    limit: Annotated[str, whole(_MOST)] = ""
    cursor: str = ""


class AuditAnchor(Shape, kw_only=True):
    """The newest link of a tenant's chain; without a tenant, of what concerns everyone."""

    tenant: str
    number: int
    hash: str


class AuditAnchors(Shape, kw_only=True):
    """To be kept where nobody who writes to the store can write."""

    anchors: list[AuditAnchor]


class AuditProof(Shape, kw_only=True):
    """What was looked at, and what of it does not hold."""

    holds: bool
    records: int
    seals: int
    pages: int
    unsealed: int
    problems: list[str]


class AuditLines(Page, kw_only=True):
    """Records and seals, each a line of JSON as it is to be kept; a seal follows its records."""

    lines: list[str]


async def list_anchors(desk: Desk, _: OfTenant) -> Any:
    """`GET audit/anchors?tenant=`: the newest link of each chain, to be kept elsewhere."""
    found = await desk.gate.trail.anchors(desk.tenant or None)
    return {"anchors": [msgspec.structs.asdict(one) for one in found]}


async def verify(desk: Desk, given: Kept) -> Any:
    """`POST audit/verify` `{tenant, anchors: [...]}`: every record, seal and page is looked at
    again, in a process of its own, one proof at a time. It is the server's word about itself.
    """
    work = desk.gate.trail.verify(tenant=desk.tenant or None, kept=given.anchors)
    found = await while_there(desk.request.receive, work)
    return msgspec.structs.asdict(found) | {"holds": found.holds}


async def export(desk: Desk, _: SomeLines) -> Any:
    """`GET audit/export?tenant=&limit=&cursor=`: records and seals as lines of JSON, enough for
    others to verify. About so many: a seal and its records stand on one page.
    """
    most = desk.request.number("limit", default=500, most=_MOST)
    after = opened(desk.request, Mark)
    found = await desk.gate.trail.export(desk.tenant or None, after, most=most)
    mark = found.following
    following = None if mark is None else made(desk.request, msgspec.structs.astuple(mark))
    return {"lines": found.lines, "next": following}
