"""SpiceDB's schema is ours, or the start stops and says what differs."""

from collections.abc import Generator

import pytest
from authzed.api.v1 import AsyncClient, ReadSchemaRequest, WriteSchemaRequest
from grpcutil import insecure_bearer_token_credentials

from tests.engines.relation_engines import PATIENT, opened, parsed
from tests.servers.spicedb import SpiceDB as Server
from toolgate.caller import Caller
from toolgate.engines.spicedb import SpiceDB
from toolgate.engines.spicedb_schema import DEFINITIONS, TEXT
from toolgate.errors import RelationsUnavailable, SettingsInvalid
from toolgate.tenancy.relation import SCHEMA

pytestmark = pytest.mark.req("G7")
THEIRS = "definition document {\n\trelation reader: user\n}"


@pytest.fixture
def server(spicedb: Server) -> Generator[Server]:
    """One without a schema."""
    with type(spicedb)() as empty:
        yield empty


async def write(server: Server, text: str) -> None:
    client = AsyncClient(server.address, insecure_bearer_token_credentials(server.token))
    await client.WriteSchema(WriteSchemaRequest(schema=text))


async def text_in(server: Server) -> str:
    client = AsyncClient(server.address, insecure_bearer_token_credentials(server.token))
    return (await client.ReadSchema(ReadSchemaRequest())).schema_text


async def works(server: Server) -> None:
    ann = Caller(tenant="acme", user="ann")
    async with opened(server) as engine:
        await engine.write("acme", parsed("tool:pay#owner@user:ann"), [])
        assert await engine.executable(ann, ["pay", "read"]) == {"pay"}


def test_the_schema_has_every_relation_and_subject_of_ours() -> None:
    for kind, relations in SCHEMA.items():
        for relation, subjects in relations.items():
            line = f"\trelation {relation}: {' | '.join(sorted(subjects))}"
            assert line in DEFINITIONS[kind].split("\n")
    assert "\tpermission execute = owner + executor" in DEFINITIONS["tool"].split("\n")


async def test_an_empty_server_gets_the_schema_and_a_second_start_changes_nothing(
    server: Server,
) -> None:
    await works(server)
    first = await text_in(server)
    await works(server)
    assert await text_in(server) == first


async def test_what_others_defined_is_kept(server: Server) -> None:
    await write(server, f"definition user {{}}\n\n{THEIRS}")
    await works(server)
    text = await text_in(server)
    assert THEIRS in text
    assert "permission execute" in text


async def test_what_others_added_to_ours_is_no_conflict(server: Server) -> None:
    more = "\trelation viewer: user\n\tpermission view = viewer + execute\n\tpermission execute"
    await write(server, TEXT.replace("\tpermission execute", more))
    await works(server)


CONFLICTS = {
    "another execute": ("owner + executor", "owner", "tool.execute is another"),
    "no execute": ("permission execute", "permission run", "tool.execute is missing"),
    "no owner": (
        "\trelation owner: agent | agent#user | group#member | team#member | user\n",
        "\trelation owner: user\n",
        "tool.owner has to take group#member",
    ),
    "a wildcard": (
        "\trelation executor: agent |",
        "\trelation executor: user:* | agent |",
        "tool.executor may not take user:*",
    ),
    "a relation of another name": (
        "\trelation user: ",
        "\trelation principal: ",
        "agent.user is missing",
    ),
}


@pytest.mark.parametrize("case", CONFLICTS)
async def test_a_schema_that_says_something_else_stops_the_start(server: Server, case: str) -> None:
    old, new, said = CONFLICTS[case]
    text = TEXT.replace(old, new)
    assert text != TEXT
    if case == "a relation of another name":
        text = text.replace("agent#user", "agent#principal")
    await write(server, text)
    before = await text_in(server)
    with pytest.raises(SettingsInvalid) as refused:
        await works(server)
    assert said in str(refused.value)
    # Whoever asks all the same hears no.
    engine = SpiceDB(f"grpc://{server.address}", server.token, PATIENT)
    try:
        with pytest.raises(RelationsUnavailable) as unavailable:
            await engine.executable(Caller(tenant="acme", user="ann"), ["pay"])
        assert said in str(unavailable.value)
        assert said in engine.health().problem
    finally:
        await engine.close()
    assert await text_in(server) == before
