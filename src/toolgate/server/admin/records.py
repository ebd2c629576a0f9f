"""`/v1/admin/`: relations, policy modules, and the record of every change."""

from typing import Annotated, Any

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.server.admin.desk import Desk, OfTenant, Signed, SignedOfTenant, SomeOfTenant, noted
from toolgate.server.cursor import Whole, made, opened
from toolgate.server.fields import Nothing, whole
from toolgate.tenancy.names import nearest
from toolgate.tenancy.relation import Relation

_MOST_RELATIONS = 10_000


class Relations(SignedOfTenant):
    """Relations such as `tool:pay#executor@user:ann`."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class Module(Signed, kw_only=True):
    """A Rego module."""

    text: str


class SomeRecords(OfTenant):
    """How many, and from where on."""

    limit: Annotated[str, whole(1_000)] = ""
    before: Annotated[str, whole(999_999_999)] = ""
    cursor: str = ""


async def list_relations(desk: Desk, _: SomeOfTenant) -> Any:
    """`GET relations?tenant=&limit=&cursor=`."""
    most = desk.request.number("limit", default=1_000, most=_MOST_RELATIONS)
    last = opened(desk.request, tuple[str, str, str, str, str, str])
    found = await desk.gate.tenancy.relations(
        desk.need_tenant(), limit=most, after=None if last is None else Relation(*last)
    )
    following = None
    if len(found) == most:
        following = made(desk.request, msgspec.structs.astuple(found[-1]))
    return {"relations": [str(relation) for relation in found], "next": following}


async def put_relations(desk: Desk, given: Relations) -> Any:
    """`POST relations` `{tenant, add: [...], remove: [...]}`."""
    tenant, before = desk.need_tenant(), desk.gate.tenancy.world
    await desk.tenancy.relate(tenant, add=given.add, remove=given.remove)
    answer = {"tenant": tenant, "added": given.add, "removed": given.remove}
    return noted(answer, desk.notes(before, tenant))


async def list_policies(desk: Desk, _: Nothing) -> Any:
    """`GET policies`: the modules that are kept in the store, and how the engines are doing."""
    return {
        "modules": dict(desk.gate.tenancy.world.everyone.policies),
        "engines": [msgspec.to_builtins(one) for one in desk.gate.gate.health()],
    }


async def put_policy(desk: Desk, given: Module) -> Any:
    """`PUT policies/{name}` `{text}`: checked with all the others before it is kept."""
    [name] = desk.names
    await desk.tenancy.set_policy_module(name, given.text)
    return {"name": name}


async def remove_policy(desk: Desk, _: Signed) -> Any:
    """`DELETE policies/{name}`."""
    [name] = desk.names
    await desk.gate.tenancy.refresh()
    kept = desk.gate.tenancy.world.everyone.policies
    if name not in kept:
        raise InvalidRequest(
            f"There is no module {name[:80]!r} in the store; nothing was changed."
            + nearest(name, kept)
        )
    await desk.tenancy.set_policy_module(name, None)
    return {"name": name, "removed": True}


async def list_audit(desk: Desk, given: SomeRecords) -> Any:
    """`GET audit?tenant=&limit=&cursor=`: who changed what, when and why; newest first."""
    number = desk.request.number
    limit, last = number("limit", default=100, most=1_000), opened(desk.request, Whole)
    if last is None and given.before:
        last = number("before", default=1, most=999_999_999)
    records = await desk.gate.tenancy.audit(tenant=desk.tenant or None, limit=limit, before=last)
    return {
        "records": [
            msgspec.structs.asdict(record) | {"details": dict(record.details)} for record in records
        ],
        "next": made(desk.request, records[-1].id) if len(records) == limit else None,
    }
