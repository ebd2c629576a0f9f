"""Keys: a secret that is shown once and found nowhere afterwards."""

import hashlib
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.errors import InvalidRequest
from toolgate.store.directory import TableDirectory
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite
from toolgate.store.tables import api_keys
from toolgate.tenancy import keys
from toolgate.tenancy.first import AGENT, TENANT, USER, first_keys
from toolgate.tenancy.keys import Role
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("V3")


def bytes_of(folder: Path) -> bytes:
    """Everything that is on disk: the file, its log and its index."""
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


@pytest.mark.parametrize("role", list(Role))
def test_a_key_tells_its_role_and_holds_256_bits(role: Role) -> None:
    fresh = keys.make(role, tenant="acme", agent="clerk")
    prefix = f"tg_{role}_"
    assert fresh.secret.startswith(prefix)
    assert len(fresh.secret.removeprefix(prefix)) == 43
    assert fresh.key.digest == hashlib.sha256(fresh.secret.encode()).hexdigest()


def test_no_two_keys_are_alike() -> None:
    made = [keys.make(Role.AGENT, tenant="acme", agent="clerk") for _ in range(1_000)]
    assert len({one.secret for one in made}) == 1_000
    assert len({one.key.digest for one in made}) == 1_000
    assert len({one.key.id for one in made}) == 1_000


def test_what_is_kept_does_not_hold_the_secret() -> None:
    fresh = keys.make(Role.ADMIN, tenant="acme")
    assert fresh.secret not in repr(fresh.key)
    assert fresh.secret.rpartition("_")[2] not in repr(fresh.key)


async def test_a_secret_is_nowhere_in_the_database(tmp_path: Path) -> None:
    database = Sqlite(tmp_path / "toolgate.db")
    await migrate(database)
    tenancy = Tenancy(TableDirectory(database))
    await tenancy.set_agent("acme", "clerk")
    made = [
        await tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk"),
        await tenancy.add_key(Role.ADMIN, tenant="acme"),
    ]
    await tenancy.revoke_key(made[0].key.id)
    on_disk = bytes_of(tmp_path)
    for fresh in made:
        assert fresh.key.digest.encode() in on_disk
        assert fresh.secret.encode() not in on_disk
        assert fresh.secret.removeprefix("tg_")[6:].encode() not in on_disk
    await database.close()
    assert not any(fresh.secret.encode() in bytes_of(tmp_path) for fresh in made)


async def test_a_secret_that_was_stored_would_be_found(tmp_path: Path) -> None:
    """The control: keep the secret where the digest belongs, and the search above finds it."""
    database = Sqlite(tmp_path / "toolgate.db")
    await migrate(database)
    fresh = keys.make(Role.ADMIN, tenant="acme")
    tenancy = Tenancy(TableDirectory(database))
    await tenancy.add_tenant("acme")
    await tenancy.add_key(Role.ADMIN, tenant="acme")

    def careless(connection: Connection) -> None:
        connection.execute(sa.update(api_keys).values(digest=fresh.secret))

    await database.write(careless)
    assert fresh.secret.encode() in bytes_of(tmp_path)
    await database.close()


async def test_a_key_opens_until_it_is_revoked() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_agent("acme", "clerk")
    fresh = await tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk")
    assert tenancy.world.keys[keys.digest(fresh.secret)] == fresh.key
    await tenancy.revoke_key(fresh.key.id)
    assert keys.digest(fresh.secret) not in tenancy.world.keys


async def test_revoking_a_key_that_is_not_there_says_so() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_agent("acme", "clerk")
    fresh = await tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk")
    with pytest.raises(InvalidRequest, match="nothing was revoked"):
        await tenancy.revoke_key(fresh.key.id + "x")
    assert tenancy.world.keys


async def test_an_agents_key_names_its_agent() -> None:
    tenancy = Tenancy(MemoryDirectory())
    with pytest.raises(InvalidRequest, match="agent"):
        await tenancy.add_key(Role.AGENT, tenant="acme")
    await tenancy.add_tenant("acme")
    assert (await tenancy.add_key(Role.ADMIN, tenant="acme")).key.agent == ""


async def test_the_first_start_makes_a_key_for_each_role() -> None:
    tenancy = Tenancy(MemoryDirectory())
    made = await first_keys(tenancy)
    assert made is not None
    world = tenancy.world
    admin, agent = world.keys[keys.digest(made.admin)], world.keys[keys.digest(made.agent)]
    assert (admin.role, admin.tenant, admin.agent) == (Role.ADMIN, TENANT, "")
    assert (agent.role, agent.tenant, agent.agent) == (Role.AGENT, TENANT, AGENT)
    assert (admin.user, agent.user) == ("", USER), "whoever is asked for a confirmation"
    assert AGENT in world.tenants[TENANT].capsules


async def test_a_second_start_makes_no_more_keys() -> None:
    directory = MemoryDirectory()
    assert await first_keys(Tenancy(directory)) is not None
    before = await directory.load()
    assert await first_keys(Tenancy(directory)) is None
    assert await directory.load() == before


async def test_revoking_every_key_does_not_bring_new_ones() -> None:
    directory = MemoryDirectory()
    tenancy = Tenancy(directory)
    await first_keys(tenancy)
    for key in list(tenancy.world.keys.values()):
        await tenancy.revoke_key(key.id)
    assert not tenancy.world.keys
    assert await first_keys(Tenancy(directory)) is None


async def test_a_key_is_only_made_for_somebody_on_record() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_agent("acme", "clerk")
    with pytest.raises(InvalidRequest, match="no agent 'clrek' of tenant 'acme'"):
        await tenancy.add_key(Role.AGENT, tenant="acme", agent="clrek")
    with pytest.raises(InvalidRequest, match="no tenant 'amce'"):
        await tenancy.add_key(Role.ADMIN, tenant="amce")
    assert not tenancy.world.keys
    assert await tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk")
