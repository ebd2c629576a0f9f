"""Each real server proves itself in one round trip, ends when told to, and is missed aloud."""

# aiokafka and asyncpg carry no complete types; strictness here would only be about them.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import aiohttp
import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from authzed.api.v1 import (
    AsyncClient,
    CheckPermissionRequest,
    CheckPermissionResponse,
    Consistency,
    ObjectReference,
    Relationship,
    RelationshipUpdate,
    SubjectReference,
    WriteRelationshipsRequest,
    WriteSchemaRequest,
)
from grpcutil import insecure_bearer_token_credentials
from redis.asyncio import Redis as RedisClient

from tests.servers.kafka import Kafka
from tests.servers.opa import Opa
from tests.servers.postgres import Postgres
from tests.servers.process import ROOT, StartError
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB

POLICY = """
package toolgate.proof

default allow := false

allow if input.tool == "add"
"""

SCHEMA = """
definition user {}

definition tool {
    relation caller: user
    permission call = caller
}
"""


async def test_opa_decides_by_the_policy_it_was_given(opa: Opa) -> None:
    async with aiohttp.ClientSession(opa.url) as session:
        async with session.put("/v1/policies/proof", data=POLICY) as put:
            assert put.status == 200, await put.text()

        async def decide(tool: str) -> object:
            question = {"input": {"tool": tool}}
            async with session.post("/v1/data/toolgate/proof/allow", json=question) as answer:
                return (await answer.json())["result"]

        assert await decide("add") is True
        assert await decide("drop") is False


async def test_spicedb_allows_the_related_subject_and_no_other(spicedb: SpiceDB) -> None:
    # One of its own: the schema of a server is replaced as a whole, and others use the shared one.
    with type(spicedb)() as server:
        client = AsyncClient(server.address, insecure_bearer_token_credentials(server.token))
        tool = ObjectReference(object_type="tool", object_id="add")

        def user(name: str) -> SubjectReference:
            return SubjectReference(object=ObjectReference(object_type="user", object_id=name))

        async def check(name: str) -> int:
            answer = await client.CheckPermission(
                CheckPermissionRequest(
                    consistency=Consistency(fully_consistent=True),
                    resource=tool,
                    permission="call",
                    subject=user(name),
                )
            )
            return answer.permissionship

        await client.WriteSchema(WriteSchemaRequest(schema=SCHEMA))
        touch = RelationshipUpdate(
            operation=RelationshipUpdate.OPERATION_TOUCH,
            relationship=Relationship(resource=tool, relation="caller", subject=user("ann")),
        )
        await client.WriteRelationships(WriteRelationshipsRequest(updates=[touch]))

        assert await check("ann") == CheckPermissionResponse.PERMISSIONSHIP_HAS_PERMISSION
        assert await check("bob") == CheckPermissionResponse.PERMISSIONSHIP_NO_PERMISSION


async def test_kafka_shares_partitions_in_a_group_and_resumes_after_its_commit(
    kafka: Kafka,
) -> None:
    topic, group = f"proof-{uuid4()}", f"group-{uuid4()}"

    def consumer() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=kafka.address,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            # A member learns that another joined at its next heartbeat.
            heartbeat_interval_ms=100,
        )

    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.address)
    await admin.start()
    await admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=kafka.address) as producer:

        async def produce(value: bytes) -> None:
            for partition in (0, 1):
                await producer.send_and_wait(topic, value, partition=partition)

        async with consumer() as one, consumer() as two:
            await produce(b"before")
            received = [await one.getone(), await two.getone()]
            assert sorted(record.partition for record in received) == [0, 1]
            await one.commit()
            await two.commit()
        await produce(b"after")
        async with consumer() as heir:
            received = [await heir.getone(), await heir.getone()]
    left = sorted((record.partition, record.value) for record in received)
    assert left == [(0, b"after"), (1, b"after")]


async def test_postgres_keeps_a_commit_and_forgets_a_rollback(postgres: Postgres) -> None:
    writer, reader = await asyncpg.connect(postgres.dsn), await asyncpg.connect(postgres.dsn)
    try:
        await writer.execute("CREATE TABLE proof (word text)")
        async with writer.transaction():
            await writer.execute("INSERT INTO proof VALUES ('kept')")
            assert await reader.fetch("SELECT word FROM proof") == []
        undone = writer.transaction()
        await undone.start()
        await writer.execute("INSERT INTO proof VALUES ('forgotten')")
        await undone.rollback()
        assert [row["word"] for row in await reader.fetch("SELECT word FROM proof")] == ["kept"]
        await writer.execute("DROP TABLE proof")
    finally:
        await writer.close()
        await reader.close()


async def test_redis_runs_a_loaded_script_by_its_digest(redis_server: Redis) -> None:
    async with RedisClient.from_url(redis_server.url) as client:
        digest = await client.script_load("return redis.call('INCRBY', KEYS[1], ARGV[1])")
        key = f"proof-{uuid4()}"
        assert await client.evalsha(digest, 1, key, "2") == 2
        assert await client.evalsha(digest, 1, key, "3") == 5


def _is_gone(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    # Ended, and only waiting for its new parent to take note.
    return stat.rpartition(")")[2].split()[0] in {"Z", "X"}


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for children in found for child in children.read_text().split()]


@pytest.mark.parametrize("fixture", ["opa", "spicedb", "kafka", "postgres", "redis_server"])
def test_a_stopped_server_is_really_gone(fixture: str, request: pytest.FixtureRequest) -> None:
    kind: type[Opa | SpiceDB | Kafka | Postgres | Redis] = type(request.getfixturevalue(fixture))
    with kind() as server:
        family = [server.pid, *_children(server.pid)]
        assert not any(map(_is_gone, family))
        server.stop()
        assert all(map(_is_gone, family))
    assert not server.folder.exists()


async def test_a_server_comes_back_from_an_outage_with_its_data(postgres: Postgres) -> None:
    with type(postgres)() as server:
        before = await asyncpg.connect(server.dsn)
        await before.execute("CREATE TABLE proof AS SELECT 'kept' AS word")
        server.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncpg.connect(server.dsn)
        server.start()
        after = await asyncpg.connect(server.dsn)
        assert await after.fetchval("SELECT word FROM proof") == "kept"
        await after.close()
        before.terminate()


def test_a_server_that_cannot_start_shows_its_log(redis_server: Redis) -> None:
    rival = type(redis_server)()
    rival.port = redis_server.port
    with pytest.raises(StartError, match="Address already in use"), rival:
        pass


STARTER = """
import time
from tests.servers.redis import Redis
with Redis() as server:
    print(server.pid, flush=True)
    time.sleep(60)
"""


def test_a_server_dies_with_a_parent_that_was_killed(redis_server: Redis, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    starter = [sys.executable, "-c", STARTER]
    with subprocess.Popen(starter, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        assert not _is_gone(server)
        parent.kill()
    deadline = time.monotonic() + 10
    while not _is_gone(server) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _is_gone(server)


PROOFS = {
    "OPA": test_opa_decides_by_the_policy_it_was_given,
    "SpiceDB": test_spicedb_allows_the_related_subject_and_no_other,
    "Kafka": test_kafka_shares_partitions_in_a_group_and_resumes_after_its_commit,
    "PostgreSQL": test_postgres_keeps_a_commit_and_forgets_a_rollback,
    "Redis": test_redis_runs_a_loaded_script_by_its_digest,
}


@pytest.mark.parametrize(
    ("required", "word", "status"), [("0", "skipped", 0), ("1", "required", 1)]
)
def test_an_absent_server_skips_its_tests_unless_it_is_required(
    required: str, word: str, status: int, tmp_path: Path
) -> None:
    nothing = {"PATH": str(tmp_path), "TOOLGATE_SERVICES": str(tmp_path)}
    proofs = [f"{__file__}::{proof.__name__}" for proof in PROOFS.values()]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *proofs],
        cwd=ROOT,
        env={**nothing, "TOOLGATE_REQUIRE_SERVICES": required},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == status, run.stdout
    for name in PROOFS:
        assert f"{word}: no {name} (run make services)" in run.stdout
