"""What is SpiceDB's own: writes that are read back, tokens, lists that are long."""

from uuid import uuid4

import grpc
import pytest
from authzed.api.v1 import (
    AsyncClient,
    CheckPermissionRequest,
    CheckPermissionResponse,
    Consistency,
    ObjectReference,
    SubjectReference,
    ZedToken,
)
from grpcutil import insecure_bearer_token_credentials

from tests.engines.relation_engines import opened, parsed
from tests.servers.spicedb import SpiceDB as Server
from toolgate.caller import Caller
from toolgate.engines.spicedb import SpiceDB
from toolgate.errors import InvalidRequest, SettingsInvalid
from toolgate.tenancy.relation import Relation

pytestmark = pytest.mark.req("G7")


def tenant() -> str:
    return f"t{uuid4().hex}"


async def test_more_than_spicedb_takes_at_once_is_written_whole(spicedb: Server) -> None:
    acme = tenant()
    many = [Relation("tool", f"n{at}", "executor", "user", "ann") for at in range(1_201)]
    ann = Caller(tenant=acme, user="ann")
    async with opened(spicedb) as engine:
        token = await engine.write(acme, [*many, *many], [])
        names = [one.name for one in many]
        listed = await engine.executable(ann, [*names, "other"], token=token)
        assert listed == frozenset(names)
        assert await engine.read(acme, limit=5_000) == sorted(many)
        assert len(await engine.read(acme, limit=7)) == 7


async def test_a_list_that_is_longer_than_a_question_is_decided(spicedb: Server) -> None:
    acme = tenant()
    ann = Caller(tenant=acme, user="ann")
    names = [f"n{at}" for at in range(10_400)]
    async with opened(spicedb) as engine:
        await engine.write(acme, parsed("tool:n1#owner@user:ann", "tool:n10399#owner@user:ann"), [])
        assert await engine.executable(ann, names) == {"n1", "n10399"}


async def test_read_gives_back_what_was_written_and_nobody_elses(spicedb: Server) -> None:
    acme = tenant()
    mine = parsed(
        "tool:a:b.c#owner@user:ann@example.com",
        "group:f/g#member@team:blue#member",
        "agent:billing#user@user:ß😀",
        "team:blue#member@agent:billing",
    )
    async with opened(spicedb) as engine:
        await engine.write(acme, mine, [])
        await engine.write(f"{acme}2", parsed("tool:theirs#owner@user:bob"), [])
        assert await engine.read(acme, limit=100) == sorted(mine)
        await engine.write(acme, [], mine[:2])
        assert await engine.read(acme, limit=100) == sorted(mine[2:])


async def test_what_cannot_be_written_is_refused_before_anything_is(spicedb: Server) -> None:
    acme = tenant()
    good = parsed("tool:pay#owner@user:ann")
    async with opened(spicedb) as engine:
        with pytest.raises(InvalidRequest, match="added and removed"):
            await engine.write(acme, good, good)
        with pytest.raises(InvalidRequest):
            await engine.write(acme, [*good, Relation("tool", "a", "owner", "tool", "b")], [])
        assert await engine.write(acme, [], []) == ""
        assert await engine.read(acme, limit=10) == []


async def at(server: Server, moment: str, caller: Caller, tool: str) -> bool:
    """What SpiceDB says of an older moment: the answer that a question without a guard may get."""
    client = AsyncClient(server.address, insecure_bearer_token_credentials(server.token))

    def of(kind: str, name: str) -> ObjectReference:
        return ObjectReference(object_type=kind, object_id=f"{caller.tenant}/{name}")

    answer = await client.CheckPermission(
        CheckPermissionRequest(
            consistency=Consistency(at_exact_snapshot=ZedToken(token=moment)),
            resource=of("tool", tool),
            permission="execute",
            subject=SubjectReference(object=of("user", caller.user)),
        )
    )
    return answer.permissionship == CheckPermissionResponse.PERMISSIONSHIP_HAS_PERMISSION


async def test_an_older_moment_lets_in_whom_the_token_keeps_out(spicedb: Server) -> None:
    """The new enemy, CASES.md 50, with the guard off: SpiceDB is asked about an older moment."""
    acme = tenant()
    member, grant = parsed("group:fin#member@user:ann", "tool:pay#executor@group:fin#member")
    ann = Caller(tenant=acme, user="ann")
    async with opened(spicedb) as engine:
        for _ in range(20):
            before = await engine.write(acme, [member, grant], [])
            after = await engine.write(acme, [], [member])
            assert await at(spicedb, before, ann, "pay")
            assert not await at(spicedb, after, ann, "pay")
            assert await engine.executable(ann, ["pay"], token=after) == frozenset()
            assert await engine.executable(ann, ["pay"], token=before, fresh=True) == frozenset()
            assert await engine.executable(ann, ["pay"]) == frozenset()


async def test_spicedb_alone_loses_itself_where_the_walk_says_no(spicedb: Server) -> None:
    """The guard-off control of groups that hold each other: left alone, it says neither."""
    acme = tenant()
    ann, bob = (Caller(tenant=acme, user=user) for user in ("ann", "bob"))
    async with opened(spicedb) as engine:
        moment = await engine.write(
            acme,
            parsed(
                "tool:pay#executor@group:a#member",
                "group:a#member@group:b#member",
                "group:b#member@group:a#member",
                "group:b#member@user:ann",
            ),
            [],
        )
        with pytest.raises(grpc.RpcError):
            await at(spicedb, moment, bob, "pay")
        assert await engine.executable(bob, ["pay"], token=moment) == frozenset()
        assert await engine.executable(ann, ["pay"], token=moment) == {"pay"}


@pytest.mark.parametrize("url", ["", "http://x:1", "grpc://", "grpc://a b", "grpc://a/b"])
async def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"relations\.url"):
        SpiceDB(url, "key", 1.0)


@pytest.mark.parametrize("key", ["", "se cret", "secret\n", "sécret"])
async def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(SettingsInvalid, match="token_env") as refused:
        SpiceDB("grpc://localhost", key, 1.0)
    assert "cret" not in str(refused.value)
