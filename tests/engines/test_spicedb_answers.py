"""Odd answers: whatever is not a plain yes to what was asked, nobody may."""

# The package's servers carry no complete types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportAbstractUsage=false

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import authzed.api.v1 as authzed_v1
import grpc
import grpc.aio
import pytest
from authzed.api.v1 import (
    CheckBulkPermissionsPair,
    CheckBulkPermissionsRequest,
    CheckBulkPermissionsResponse,
    CheckBulkPermissionsResponseItem,
    CheckPermissionResponse,
    ReadRelationshipsRequest,
    ReadRelationshipsResponse,
    Relationship,
    WriteRelationshipsRequest,
    WriteRelationshipsResponse,
    ZedToken,
)
from authzed.api.v1.permission_service_pb2_grpc import (
    PermissionsServiceServicer,
    add_PermissionsServiceServicer_to_server,
)
from authzed.api.v1.schema_service_pb2_grpc import (
    SchemaServiceServicer,
    add_SchemaServiceServicer_to_server,
)

from tests.engines.relation_engines import PATIENT, parsed
from toolgate.caller import Caller
from toolgate.engines.spicedb import SpiceDB
from toolgate.errors import RelationsUnavailable

pytestmark = pytest.mark.req("G7")
v1 = cast("Any", authzed_v1)
Pairs = list[CheckBulkPermissionsPair]
ANN = Caller(tenant="acme", user="ann")
YES = CheckPermissionResponse.PERMISSIONSHIP_HAS_PERMISSION
MOMENT = "a moment"
NO = CheckPermissionResponse.PERMISSIONSHIP_NO_PERMISSION


class Schema(SchemaServiceServicer):
    """Already holds what is asked for."""

    async def ReadSchema(self, request: Any, context: Any) -> Any:  # noqa: N802
        return v1.ReadSchemaResponse(schema_text="")

    async def DiffSchema(self, request: Any, context: Any) -> Any:  # noqa: N802
        return v1.DiffSchemaResponse()


class Permissions(PermissionsServiceServicer):
    """Everybody may execute `pay`; then the answer is spoilt."""

    def __init__(self, spoil: Callable[[Pairs], Pairs], rows: Sequence[Relationship] = ()) -> None:
        self.spoil = spoil
        self.rows = rows

    async def CheckBulkPermissions(  # noqa: N802
        self, request: CheckBulkPermissionsRequest, context: Any
    ) -> CheckBulkPermissionsResponse:
        pairs: Pairs = []
        for item in request.items:
            may = YES if item.resource.object_id.endswith("/pay") else NO
            answer = CheckBulkPermissionsResponseItem(permissionship=may)
            pairs.append(CheckBulkPermissionsPair(request=item, item=answer))
        return CheckBulkPermissionsResponse(
            pairs=self.spoil(pairs), checked_at=ZedToken(token=MOMENT)
        )

    async def WriteRelationships(  # noqa: N802
        self, request: WriteRelationshipsRequest, context: Any
    ) -> WriteRelationshipsResponse:
        return WriteRelationshipsResponse(written_at=ZedToken(token=MOMENT))

    async def ReadRelationships(  # noqa: N802
        self, request: ReadRelationshipsRequest, context: Any
    ) -> AsyncIterator[ReadRelationshipsResponse]:
        for row in self.rows:
            yield ReadRelationshipsResponse(relationship=row)


@asynccontextmanager
async def answering(permissions: Permissions) -> AsyncGenerator[SpiceDB]:
    server = grpc.aio.server()
    add_PermissionsServiceServicer_to_server(permissions, server)
    add_SchemaServiceServicer_to_server(Schema(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    engine = SpiceDB(f"grpc://127.0.0.1:{port}", "key", PATIENT)
    try:
        yield engine
    finally:
        await engine.close()
        await server.stop(None)


def item(pair: CheckBulkPermissionsPair, said: int) -> None:
    pair.item.permissionship = cast("Any", said)


def changed(change: Callable[[CheckBulkPermissionsPair], object]) -> Callable[[Pairs], Pairs]:
    """The answer about `pay` is another."""

    def spoil(pairs: Pairs) -> Pairs:
        change(next(one for one in pairs if one.request.resource.object_id.endswith("/pay")))
        return pairs

    return spoil


def failed(code: int, detail: bytes) -> Callable[[CheckBulkPermissionsPair], object]:
    def change(pair: CheckBulkPermissionsPair) -> None:
        pair.error.code = code
        pair.error.message = "max depth exceeded"
        pair.error.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=detail)

    return change


ODD: dict[str, Callable[[Pairs], Pairs]] = {
    "nothing": lambda pairs: [],
    "one is missing": lambda pairs: pairs[1:],
    "one twice": lambda pairs: [*pairs, pairs[0]],
    "one twice, another missing": lambda pairs: [pairs[0], *pairs[:-1]] if pairs[1:] else [],
    "unspecified": changed(lambda pair: item(pair, 0)),
    "conditional": changed(lambda pair: item(pair, 3)),
    "a figure that is unknown": changed(lambda pair: item(pair, 17)),
    "neither an item nor an error": changed(lambda pair: pair.ClearField("item")),
    "an error": changed(failed(13, b"ERROR_REASON_UNSPECIFIED")),
    "an error that only speaks of depth": changed(failed(9, b"")),
    "another tool": changed(lambda pair: setattr(pair.request.resource, "object_id", "acme/x")),
    "another tenant": changed(lambda pair: setattr(pair.request.resource, "object_id", "b/pay")),
    "another kind": changed(lambda pair: setattr(pair.request.resource, "object_type", "group")),
    "another permission": changed(lambda pair: setattr(pair.request, "permission", "owner")),
    "another user": changed(
        lambda pair: setattr(pair.request.subject.object, "object_id", "acme/bob")
    ),
    "another relation of the user": changed(
        lambda pair: setattr(pair.request.subject, "optional_relation", "member")
    ),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("tools", [["pay"], ["pay", "read", "write"], ["read", "pay"]])
async def test_an_odd_answer_is_a_no_to_the_whole_question(odd: str, tools: list[str]) -> None:
    async with answering(Permissions(ODD[odd])) as engine:
        with pytest.raises(RelationsUnavailable, match="cannot be used"):
            await engine.executable(ANN, tools)


@pytest.mark.parametrize("order", [1, -1])
async def test_answers_belong_to_what_they_name_in_whatever_order(order: int) -> None:
    async with answering(Permissions(lambda pairs: pairs[::order])) as engine:
        assert await engine.executable(ANN, ["pay", "read", "write"]) == {"pay"}
        assert await engine.executable(ANN, ["read", "write", "pay"]) == {"pay"}


async def test_a_lost_way_is_walked_and_a_condition_is_no_yes() -> None:
    lost = changed(failed(9, b"ERROR_REASON_MAXIMUM_DEPTH_EXCEEDED"))
    plain = Relationship(relation="owner")
    plain.resource.object_type, plain.resource.object_id = "tool", "acme/pay"
    plain.subject.object.object_type, plain.subject.object.object_id = "user", "acme/ann"
    conditional = Relationship()
    conditional.CopyFrom(plain)
    conditional.optional_caveat.caveat_name = "on_weekdays"

    for rows, may in (([plain], {"pay"}), ([conditional], set[str]()), ([], set[str]())):
        async with answering(Permissions(lost, rows)) as engine:
            assert await engine.executable(ANN, ["pay", "read"]) == may


async def test_a_write_that_is_not_there_afterwards_is_no_write() -> None:
    (relation,) = parsed("tool:pay#owner@user:ann")
    there = Relationship(relation="owner")
    there.resource.object_type, there.resource.object_id = "tool", "acme/pay"
    there.subject.object.object_type, there.subject.object.object_id = "user", "acme/ann"

    async with answering(Permissions(lambda pairs: pairs, [])) as forgets:
        with pytest.raises(RelationsUnavailable, match="not there"):
            await forgets.write("acme", [relation], [])
        assert await forgets.write("acme", [], [relation]) == MOMENT
    async with answering(Permissions(lambda pairs: pairs, [there])) as keeps:
        assert await keeps.write("acme", [relation], []) == MOMENT
        with pytest.raises(RelationsUnavailable, match="still there"):
            await keeps.write("acme", [], [relation])
