"""Relations in a SpiceDB. Only its plain yes is one; whatever else it says, nobody may."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from authzed.api.v1 import (
    CheckBulkPermissionsPair,
    CheckBulkPermissionsRequest,
    CheckBulkPermissionsRequestItem,
    CheckPermissionResponse,
    Consistency,
    ObjectReference,
    SubjectReference,
    ZedToken,
)

from toolgate.caller import Caller
from toolgate.engines import spicedb_schema, spicedb_writes
from toolgate.engines.guard import Guarded
from toolgate.engines.spicedb_channel import Channel, unavailable
from toolgate.engines.spicedb_ids import object_id
from toolgate.engines.spicedb_walk import Walk
from toolgate.errors import RelationsUnavailable, SettingsInvalid
from toolgate.gate.policy import Health
from toolgate.gate.relations import subject_of
from toolgate.tenancy.relation import Relation

# SpiceDB checks that many at once. Its look-up of all that a user has costs ten times as much a
# tool, since each comes as a message of its own.
_TOGETHER = 10_000
_YES = CheckPermissionResponse.PERMISSIONSHIP_HAS_PERMISSION
_NO = CheckPermissionResponse.PERMISSIONSHIP_NO_PERMISSION
_TOO_DEEP = b"ERROR_REASON_MAXIMUM_DEPTH_EXCEEDED"


_NOBODY = Caller(tenant="toolgate", user="nobody")


class SpiceDB:
    """The relations port over a server. Others may write to it too."""

    external = True

    def __init__(self, url: str, token: str, timeout: float) -> None:
        """`url` is `grpc://HOST:PORT`, or `grpcs://` with TLS. To be made in a running loop."""
        self._channel = Channel(url, token, timeout)
        self._guard = Guarded(RelationsUnavailable, "relations server")
        self._agreed = False
        self._agreeing = asyncio.Lock()
        self._problem = "nobody has asked it yet"

    async def start(self) -> None:
        """See that its schema is ours. Where it is away it is unhealthy, until a question succeeds.

        `SettingsInvalid` where definitions of others stand in the way.
        """
        with suppress(RelationsUnavailable):
            await self._agree()

    async def executable(
        self, caller: Caller, tools: Sequence[str], *, token: str = "", fresh: bool = False
    ) -> frozenset[str]:
        """Of these tools, those that the caller's user may execute, in one question.

        Without a token nobody knows how old an answer may be, so that it is asked for as of now: an
        answer from SpiceDB's cache can be some seconds old, and let in whom we have just removed.
        """
        subject = subject_of(caller)
        if subject is None or not tools:
            return frozenset()
        who = object_id(caller.tenant, subject[1])
        ids = {id_: tool for tool in tools if (id_ := object_id(caller.tenant, tool))}
        if who is None or not ids:
            return frozenset()
        consistency = Consistency(fully_consistent=True)
        if token and not fresh:
            consistency = Consistency(at_least_as_fresh=ZedToken(token=token))
        asked = SubjectReference(object=ObjectReference(object_type=subject[0], object_id=who))
        found = await self._guard(lambda: self._ask(asked, ids, consistency))
        return frozenset([ids[id_] for id_ in found])

    def health(self) -> Health:
        """Well, when the last question was answered."""
        well = not self._problem
        return Health(engine="spicedb", ok=well, serves=well, problem=self._problem)

    async def probe(self) -> bool:
        """Ask about nobody, who may do nothing; what counts is that it answers."""
        try:
            await self.executable(_NOBODY, ["nothing"])
        except RelationsUnavailable:
            return False
        return True

    async def write(self, tenant: str, add: Sequence[Relation], remove: Sequence[Relation]) -> str:
        """Add and remove, and see that it is so. Returns the token that later questions need."""
        await self._agree()
        return await spicedb_writes.write(self._channel, tenant, add, remove)

    async def read(self, tenant: str, *, limit: int) -> Sequence[Relation]:
        """The tenant's relations, at most so many."""
        await self._agree()
        return await spicedb_writes.read(self._channel, tenant, limit)

    async def close(self) -> None:
        """Let the connection go."""
        await self._channel.close()

    async def _agree(self) -> None:
        async with self._agreeing:
            if self._agreed:
                return
            try:
                await spicedb_schema.agree(self._channel)
            except (RelationsUnavailable, SettingsInvalid) as error:
                self._problem = error.message
                raise
            self._agreed, self._problem = True, ""

    async def _ask(
        self, subject: SubjectReference, ids: Iterable[str], consistency: Consistency
    ) -> list[str]:
        found: list[str] = []
        try:
            async with asyncio.timeout(self._channel.timeout):
                if not self._agreed:
                    await self._agree()
                for piece in _pieces(ids):
                    found += await self._check(subject, piece, consistency)
        except TimeoutError:
            raise self._down(unavailable("SpiceDB took longer than [relations] timeout.")) from None
        except SettingsInvalid as error:
            raise self._down(unavailable(error.message)) from None
        except RelationsUnavailable as error:
            raise self._down(error) from None
        self._problem = ""
        return found

    def _down(self, error: RelationsUnavailable) -> RelationsUnavailable:
        self._problem = error.message
        return error

    async def _check(
        self, subject: SubjectReference, ids: Sequence[str], consistency: Consistency
    ) -> list[str]:
        answer = await self._channel.ask(
            self._channel.permissions.CheckBulkPermissions,
            CheckBulkPermissionsRequest(
                consistency=consistency,
                items=[
                    CheckBulkPermissionsRequestItem(
                        resource=ObjectReference(object_type="tool", object_id=id_),
                        permission="execute",
                        subject=subject,
                    )
                    for id_ in ids
                ],
            ),
        )
        yes, lost = _sorted(answer.pairs, subject, ids)
        if lost:
            who = subject.object
            walk = Walk(self._channel, answer.checked_at)
            yes += await walk.executable((who.object_type, who.object_id, ""), lost)
        return yes


def _sorted(
    pairs: Iterable[CheckBulkPermissionsPair], subject: SubjectReference, ids: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Those with a yes, and those that SpiceDB lost itself in; by id, whatever their order."""
    open_ = set(ids)
    yes: list[str] = []
    lost: list[str] = []
    for pair in pairs:
        asked = pair.request
        id_ = asked.resource.object_id
        if (
            id_ not in open_
            or asked.permission != "execute"
            or asked.resource.object_type != "tool"
            or asked.subject != subject
        ):
            raise _nonsense("it answered what was not asked")
        open_.remove(id_)
        if pair.HasField("item"):
            if pair.item.permissionship == _YES:
                yes.append(id_)
            elif pair.item.permissionship != _NO:
                raise _nonsense("it said neither yes nor no")
        elif any(_TOO_DEEP in detail.value for detail in pair.error.details):
            lost.append(id_)
        else:
            raise _nonsense("it failed on a part of the question")
    if open_:
        raise _nonsense("it left a part of the question unanswered")
    return yes, lost


def _nonsense(what: str) -> RelationsUnavailable:
    return unavailable(f"SpiceDB's answer cannot be used; {what}. Look at its log.")


def _pieces(ids: Iterable[str]) -> Iterator[list[str]]:
    left = iter(ids)
    while piece := list(islice(left, _TOGETHER)):
        yield piece
