"""The port for large outputs: one suite for the table on every server and for its twin."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, MEMORY, PLACES, WALLED, open_at
from toolgate.ledger.outputs import Blob, Outputs, Piece
from toolgate.spec.document import sha256
from toolgate.store.migrate import migrate
from toolgate.store.outputs import TableOutputs
from toolgate.store.prune import Prune
from toolgate.store.records import blobs
from toolgate.testing.outputs import MemoryOutputs

pytestmark = pytest.mark.req("X6")
TWIN = "twin"
CONTENT = "grün".encode() * 5_000


async def _table(
    place: str, folder: Path, request: pytest.FixtureRequest, stack: AsyncExitStack, ttl: float
) -> TableOutputs:
    url = "sqlite:///:memory:" if place == MEMORY else f"sqlite:///{folder / 'toolgate.db'}"
    if place not in {MEMORY, FILE}:
        server: Server = request.getfixturevalue("postgres")
        url = await stack.enter_async_context(lent_url(server, walled=place == WALLED))
    database = open_at(url)
    stack.push_async_callback(database.close)
    await migrate(database)
    return TableOutputs(database, ttl=ttl)


@pytest.fixture(params=(TWIN, *PLACES))
async def outputs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Outputs]:
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            yield MemoryOutputs()
        else:
            table = await _table(request.param, tmp_path, request, stack, 86_400)
            yield table
            await table.close()


@pytest.fixture(params=(TWIN, *PLACES))
async def short_lived(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Outputs]:
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            yield MemoryOutputs(ttl=0)
        else:
            table = await _table(request.param, tmp_path, request, stack, 0)
            yield table
            await table.close()


def blob(content: bytes = CONTENT, tenant: str = "acme", scope: str = "clerk/0/") -> Blob:
    return Blob(
        tenant=tenant,
        scope=scope,
        digest=sha256(content),
        tool="report",
        media_type="text/plain",
        content=content,
    )


async def test_pieces_are_cut_by_bytes_and_end_with_the_output(outputs: Outputs) -> None:
    await outputs.keep(blob())
    size = len(CONTENT)
    for offset, length in ((0, 10), (3, 1), (100, 9_999), (size - 5, 50), (size, 5), (size + 9, 5)):
        found = await outputs.piece(
            "acme", "clerk/0/", sha256(CONTENT), offset=offset, length=length
        )
        cut = CONTENT[offset : offset + length]
        assert found == Piece(content=cut, size=size, media_type="text/plain", tool="report")


async def test_somebody_elses_output_is_as_if_it_had_never_been(outputs: Outputs) -> None:
    await outputs.keep(blob())
    digest = sha256(CONTENT)
    for tenant, scope, named in (
        ("other", "clerk/0/", digest),
        ("acme", "clerk/3/ann", digest),
        ("acme", "clerk/0/", sha256(b"x")),
        ("acme", "clerk/0/", ""),
        ("acme", "clerk/0/", "sha256:\0\ud800"),
    ):
        assert await outputs.piece(tenant, scope, named, offset=0, length=5) is None


async def test_the_same_output_is_kept_once_for_each_owner(outputs: Outputs) -> None:
    for scope in ("clerk/0/", "clerk/0/", "clerk/3/ann"):
        await outputs.keep(blob(scope=scope))
    for scope in ("clerk/0/", "clerk/3/ann"):
        assert await outputs.piece("acme", scope, sha256(CONTENT), offset=0, length=1)


async def test_the_tool_that_made_it_last_is_the_one_that_it_is_of(outputs: Outputs) -> None:
    await outputs.keep(blob())
    await outputs.keep(msgspec.structs.replace(blob(), tool="copy"))
    found = await outputs.piece("acme", "clerk/0/", sha256(CONTENT), offset=0, length=1)
    assert found is not None
    assert found.tool == "copy"


async def test_what_is_old_cannot_be_read_any_more(short_lived: Outputs) -> None:
    await short_lived.keep(blob())
    found = await short_lived.piece("acme", "clerk/0/", sha256(CONTENT), offset=0, length=1)
    assert found is None


@pytest.mark.parametrize("place", PLACES)
async def test_only_what_is_old_is_deleted(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        table = await _table(place, tmp_path, request, stack, 3_600)
        database = table._database  # pyright: ignore[reportPrivateUsage]
        await table.keep(blob(b"old"))
        await table.keep(blob(b"young"))
        await database.write(
            lambda connection: connection.execute(
                blobs.update().where(blobs.c.digest == sha256(b"old")).values(created_ns=1)
            )
        )
        await Prune(database, blobs.c.created_ns, 3_600 * 10**9).now()
        left = await database.read(
            lambda connection: connection.execute(sa.select(blobs.c.content)).scalars().all()
        )
        assert [bytes(one) for one in left] == [b"young"]
        await table.close()
