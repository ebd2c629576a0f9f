"""The way from a tool to a subject, walked by us where SpiceDB loses itself.

SpiceDB follows groups that hold each other until its depth is used up, and then says neither yes
nor no, even where another way leads to a yes; which of the two is found first is chance. The same
relations, read at the same moment, give one answer.
"""

import asyncio
from collections.abc import Iterable

from authzed.api.v1 import (
    Consistency,
    ReadRelationshipsRequest,
    Relationship,
    RelationshipFilter,
    SubjectFilter,
    ZedToken,
)

from toolgate.engines.spicedb_channel import Channel
from toolgate.tenancy.relation import EXECUTE, MOST_MEMBERSHIPS, SCHEMA

# Kind, id and relation: `("group", "acme/finance", "member")`.
Node = tuple[str, str, str]
_AT_ONCE = 16


class Walk:
    """Relations as they were at one moment."""

    def __init__(self, channel: Channel, at: ZedToken) -> None:
        self._channel = channel
        self._at = Consistency(at_exact_snapshot=at)
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def executable(self, subject: Node, tools: Iterable[str]) -> list[str]:
        """Of the ids of these tools, those that the subject may execute."""
        near = await self._near(subject)
        wanted = list(tools)
        found = await asyncio.gather(*(self._is_executable(tool, near) for tool in wanted))
        return [tool for tool, yes in zip(wanted, found, strict=True) if yes]

    async def _near(self, subject: Node) -> set[Node]:
        near = {subject}
        edge = near
        for _ in range(MOST_MEMBERSHIPS):
            above = await asyncio.gather(
                *(self._above(one, kind) for one in edge for kind in _KINDS)
            )
            edge = {node for nodes in above for node in nodes} - near
            if not edge:
                break
            near |= edge
        return near

    async def _above(self, node: Node, kind: str) -> list[Node]:
        subject = SubjectFilter(
            subject_type=node[0],
            optional_subject_id=node[1],
            optional_relation=SubjectFilter.RelationFilter(relation=node[2]),
        )
        rows = await self._read(
            RelationshipFilter(resource_type=kind, optional_subject_filter=subject)
        )
        return [(kind, row.resource.object_id, row.relation) for row in rows]

    async def _is_executable(self, tool: str, near: set[Node]) -> bool:
        rows = await self._read(RelationshipFilter(resource_type="tool", optional_resource_id=tool))
        return any(row.relation in EXECUTE and _subject(row) in near for row in rows)

    async def _read(self, filter_: RelationshipFilter) -> list[Relationship]:
        async with self._turns:
            answers = await self._channel.stream(
                self._channel.permissions.ReadRelationships,
                ReadRelationshipsRequest(consistency=self._at, relationship_filter=filter_),
            )
        # With a condition attached it is no plain yes.
        return [
            one.relationship for one in answers if not one.relationship.HasField("optional_caveat")
        ]


_KINDS = tuple(kind for kind in SCHEMA if kind != "tool")


def _subject(row: Relationship) -> Node:
    subject = row.subject
    return subject.object.object_type, subject.object.object_id, subject.optional_relation
