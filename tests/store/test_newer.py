"""A store that a newer version has upgraded: used where it was only added to, else refused."""

import re
from pathlib import Path

import pytest

from tests.store.conftest import url as url  # noqa: PLC0414  a fixture
from tests.store.schemas import opened, run, versions
from toolgate import Caller, Toolgate, tool
from toolgate.errors import StoreMismatch
from toolgate.settings.settings import Settings, Store
from toolgate.store import migrate as migrating
from toolgate.store.migrate import MOST_NEWER, VERSION, is_newer, migrate, state

pytestmark = pytest.mark.req("D1", "D2")
NEXT = f"{int(VERSION) + 1:04d}"
MIGRATIONS = Path(migrating.__file__).parent / "migrations" / "versions"
# The first of them were made while no other version could be there.
LAST_ALONE = "0006"
# The last of them names things as the metadata does.
ADDS = {"create_table", "add_column", "create_index", "f"}
# By hand, and why an older node goes on all the same.
BY_HAND = {
    # Who says nothing of tenants, as a node of a version before, sees all as the owner that it is.
    "m0008_row_security.py": {"execute", "get_bind"},
}
_AT = "UPDATE alembic_version SET version_num = '{}'"
ADDED = (
    "ALTER TABLE tool_execution_log ADD COLUMN of_a_later_version TEXT DEFAULT 'x' NOT NULL",
    "CREATE TABLE of_a_later_version (id TEXT PRIMARY KEY)",
    _AT.format(NEXT),
)


@tool(effect="irreversible")
async def act(text: str) -> str:
    """Do it."""
    return text


async def test_what_a_newer_version_added_to_is_used_and_left_as_it_is(
    url: str, tmp_path: Path
) -> None:
    async with opened(url) as database:
        await migrate(database)
        await database.write(run(*ADDED))
        assert await state(database) == "current"
    async with Toolgate.open(Settings(root=tmp_path, store=Store(url=url))) as gate:
        gate.add(act)
        me = Caller(tenant="acme", agent="billing")
        for is_again in (False, True):
            output = await gate.call("act", {"text": "a"}, caller=me, idempotency_key="k-1")
            assert (output.data, output.cached) == ("a", is_again)
    async with opened(url) as database:
        assert await database.read(versions) == [NEXT]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            _AT.format(f"{int(VERSION) + MOST_NEWER + 1:04d}"),
            "newer",
        ),
        (_AT.format("1001"), "same digit"),
        ("ALTER TABLE call_pages RENAME TO pages_of_calls", "lacks call_pages"),
    ],
)
async def test_what_a_newer_version_changed_further_is_refused(
    url: str, damage: str, words: str
) -> None:
    async with opened(url) as database:
        await migrate(database)
        await database.write(run(*ADDED, damage))
        for look in (migrate, state):
            with pytest.raises(StoreMismatch, match=words):
                await look(database)


async def test_a_column_that_every_row_has_to_fill_is_refused(url: str) -> None:
    async with opened(url) as database:
        await migrate(database)
        # SQLite adds no such column; a table that is made anew can have one.
        await database.write(
            run(
                "DROP TABLE house_secrets",
                "CREATE TABLE house_secrets (name TEXT PRIMARY KEY, value BLOB, more TEXT NOT NULL)"
                if url.startswith("sqlite")
                else "CREATE TABLE house_secrets "
                "(name TEXT PRIMARY KEY, value BYTEA, more TEXT NOT NULL)",
                ADDED[-1],
            )
        )
        with pytest.raises(StoreMismatch, match=r"house_secrets\.more"):
            await migrate(database)


@pytest.mark.parametrize(
    ("version", "is_good"),
    [
        (None, False),
        (VERSION, False),
        ("0001", False),
        (NEXT, True),
        (f"{int(VERSION) + MOST_NEWER:04d}", True),
        (f"{int(VERSION) + MOST_NEWER + 1:04d}", False),
        ("1001", False),
        ("newest", False),
        ("00008", False),
        ("٠٠٠٨", False),
    ],
)
def test_newer_is_a_few_revisions_of_the_same_generation(
    version: str | None,
    is_good: bool,  # noqa: FBT001  a case
) -> None:
    assert is_newer(version) is is_good


def test_within_a_generation_migrations_only_add() -> None:
    """An older node goes on at what they made: nothing that it needs may go."""
    for path in sorted(MIGRATIONS.glob("m*.py")):
        text = path.read_text("utf-8")
        number = path.name[1:5]
        if number <= LAST_ALONE or number.endswith("001"):
            continue
        used = set(re.findall(r"\bop\.(\w+)", text)) - BY_HAND.get(path.name, set())
        assert used <= ADDS, f"{path.name} does more than add: begin the next generation"
        for column in re.findall(r"op\.add_column\((.*?)\n    \)", text, re.DOTALL):
            assert "server_default" in column or "nullable=True" in column, path.name
