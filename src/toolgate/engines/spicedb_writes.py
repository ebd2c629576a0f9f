"""Writing relations into SpiceDB and reading them back: what is not there was not written."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from authzed.api.v1 import (
    Consistency,
    ObjectReference,
    ReadRelationshipsRequest,
    Relationship,
    RelationshipFilter,
    RelationshipUpdate,
    SubjectFilter,
    SubjectReference,
    WriteRelationshipsRequest,
    ZedToken,
)

from toolgate.engines.spicedb_channel import Channel, unavailable
from toolgate.engines.spicedb_ids import name_of, object_id
from toolgate.errors import InvalidRequest
from toolgate.tenancy.relation import SCHEMA, Relation, checked

# SpiceDB takes 1,000 unless it is told otherwise.
_TOGETHER = 500
_AT_ONCE = 16
_PAGE = 1_000


async def write(
    channel: Channel, tenant: str, add: Sequence[Relation], remove: Sequence[Relation]
) -> str:
    """What goes first, then what comes, in pieces that are whole; each is read back.

    A failure may leave earlier pieces written; the same write can be made again.
    """
    gone, new = dict.fromkeys(map(checked, remove)), dict.fromkeys(map(checked, add))
    both = next((one for one in gone if one in new), None)
    if both is not None:
        raise InvalidRequest(f"{both} cannot be added and removed at once; nothing was written.")
    touch, delete = RelationshipUpdate.OPERATION_TOUCH, RelationshipUpdate.OPERATION_DELETE
    updates = [(one, delete) for one in gone] + [(one, touch) for one in new]
    token = ""
    for piece in _pieces(updates):
        answer = await channel.ask(
            channel.permissions.WriteRelationships,
            WriteRelationshipsRequest(
                updates=[
                    RelationshipUpdate(operation=how, relationship=_wire(tenant, one))
                    for one, how in piece
                ]
            ),
        )
        await _read_back(
            channel, tenant, [(one, how == touch) for one, how in piece], answer.written_at
        )
        token = answer.written_at.token
    return token


async def read(channel: Channel, tenant: str, limit: int) -> list[Relation]:
    """The tenant's relations as of now, at most so many.

    Those that others wrote in a form that toolgate has no words for are left out.
    """
    found: list[Relation] = []
    for kind in SCHEMA:
        question = ReadRelationshipsRequest(
            consistency=Consistency(fully_consistent=True),
            relationship_filter=RelationshipFilter(
                resource_type=kind, optional_resource_id_prefix=f"{tenant}/"
            ),
            optional_limit=_PAGE,
        )
        while len(found) < limit:
            rows = await channel.stream(channel.permissions.ReadRelationships, question)
            found += [one for row in rows if (one := _ours(tenant, row.relationship))]
            if len(rows) < _PAGE:
                break
            question.optional_cursor.CopyFrom(rows[-1].after_result_cursor)
    return sorted(found)[:limit]


async def _read_back(
    channel: Channel, tenant: str, written: Iterable[tuple[Relation, bool]], at: ZedToken
) -> None:
    # Exactly that moment: another may have changed the same since.
    consistency = Consistency(at_exact_snapshot=at)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def look(relation: Relation, *, there: bool) -> None:
        wire = _wire(tenant, relation)
        question = ReadRelationshipsRequest(
            consistency=consistency, relationship_filter=_filter(wire), optional_limit=1
        )
        async with turns:
            rows = await channel.stream(channel.permissions.ReadRelationships, question)
        if (wire in [row.relationship for row in rows]) is not there:
            raise unavailable(
                f"SpiceDB took a write, but {relation} is {'not ' if there else 'still '}there. "
                "Write it again, and look at its log."
            )

    await asyncio.gather(*(look(relation, there=there) for relation, there in written))


def _wire(tenant: str, relation: Relation) -> Relationship:
    subject = SubjectReference(
        object=_reference(tenant, relation.subject_kind, relation.subject),
        optional_relation=relation.subject_relation,
    )
    return Relationship(
        resource=_reference(tenant, relation.kind, relation.name),
        relation=relation.relation,
        subject=subject,
    )


def _reference(tenant: str, kind: str, name: str) -> ObjectReference:
    id_ = object_id(tenant, name)
    if id_ is None:
        raise InvalidRequest(f"{name[:80]!r} is too long for SpiceDB; nothing was written.")
    return ObjectReference(object_type=kind, object_id=id_)


def _filter(wire: Relationship) -> RelationshipFilter:
    return RelationshipFilter(
        resource_type=wire.resource.object_type,
        optional_resource_id=wire.resource.object_id,
        optional_relation=wire.relation,
        optional_subject_filter=SubjectFilter(
            subject_type=wire.subject.object.object_type,
            optional_subject_id=wire.subject.object.object_id,
            optional_relation=SubjectFilter.RelationFilter(relation=wire.subject.optional_relation),
        ),
    )


def _ours(tenant: str, row: Relationship) -> Relation | None:
    name = name_of(tenant, row.resource.object_id)
    subject = name_of(tenant, row.subject.object.object_id)
    if name is None or subject is None or row.HasField("optional_caveat"):
        return None
    found = Relation(
        row.resource.object_type,
        name,
        row.relation,
        row.subject.object.object_type,
        subject,
        row.subject.optional_relation,
    )
    try:
        return checked(found)
    except InvalidRequest:
        return None


def _pieces(
    updates: Sequence[tuple[Relation, "RelationshipUpdate.Operation.ValueType"]],
) -> Iterator[list[tuple[Relation, "RelationshipUpdate.Operation.ValueType"]]]:
    left = iter(updates)
    while piece := list(islice(left, _TOGETHER)):
        yield piece
