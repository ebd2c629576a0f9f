"""A node reads what changed, and keeps everything else as the very same object."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from tests.thorough import some
from toolgate.errors import InvalidRequest
from toolgate.spec.tool import RateLimit
from toolgate.store import tables
from toolgate.store.database import Database
from toolgate.store.directory import TableDirectory
from toolgate.store.migrate import migrate
from toolgate.store.revision import bump
from toolgate.store.sqlite import Sqlite
from toolgate.tenancy import keys
from toolgate.tenancy.changes import (
    AddKey,
    AddTenant,
    Change,
    MarkRelations,
    PinTools,
    RemoveAgent,
    RevokeKey,
    SetActivation,
    SetAgent,
    SetBudget,
    SetLayer,
    SetPersona,
    SetPlan,
    SetPolicyModule,
    SetRateLimit,
    SetRelations,
    SetRestriction,
    SetServer,
    SetTenantFlag,
    SetToolFlag,
)
from toolgate.tenancy.directory import Directory
from toolgate.tenancy.keys import Role
from toolgate.tenancy.layer import Layer
from toolgate.tenancy.parts import EVERYONE, KEYS, SERVERS, touched
from toolgate.tenancy.relation import parse
from toolgate.tenancy.servers import Pin
from toolgate.tenancy.world import World
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("D1", "G1")
KEY = keys.make(Role.AGENT, tenant="acme", agent="clerk").key
ANN = parse("tool:pay#executor@user:ann")
SETTLED: tuple[Change, ...] = (
    AddTenant("acme"),
    SetAgent("acme", "clerk"),
    AddTenant("globex"),
    SetAgent("globex", "clerk"),
    SetTenantFlag("globex", "echo", enabled=True),
    SetToolFlag("echo", enabled=True),
    AddKey(KEY),
)
# The change, and the parts that are new afterwards.
CHANGES: list[tuple[Change, set[str]]] = [
    (SetToolFlag("echo", enabled=False), {EVERYONE}),
    (SetLayer("a", Layer(deny=("x",))), {EVERYONE}),
    (SetPersona("intern", can_add_tools=True), {EVERYONE}),
    (SetRestriction("intern", "pay", allowed=False), {EVERYONE}),
    (SetPolicyModule("a", "package a"), {EVERYONE}),
    (SetServer("files", {"url": "https://files.example"}), {SERVERS}),
    (PinTools("files", {"read": Pin("sha256:1", {"name": "read"})}), {SERVERS}),
    (SetTenantFlag("acme", "echo", enabled=False), {"acme"}),
    (SetAgent("acme", "new"), {"acme"}),
    (SetActivation("acme", "clerk", "echo"), {"acme"}),
    (SetLayer("a", Layer(deny=("x",)), tenant="acme"), {"acme"}),
    (SetRelations("acme", add=(ANN,)), {"acme"}),
    (MarkRelations("acme", "t1"), {"acme"}),
    (SetPlan("acme", "free"), {"acme"}),
    (SetBudget("acme", "money", 5), {"acme"}),
    (SetRateLimit("acme", "", "", RateLimit(calls=1, per=1)), {"acme"}),
    (SetRateLimit("", "", "echo", RateLimit(calls=1, per=1)), {EVERYONE}),
    (RemoveAgent("acme", "clerk"), {"acme", KEYS}),
    (AddKey(keys.make(Role.ADMIN, tenant="acme").key), {KEYS}),
    (RevokeKey(KEY.id), {KEYS}),
    (AddTenant("initech"), {"initech"}),
]


def parts_of(world: World) -> dict[str, object]:
    own = {EVERYONE: world.everyone, KEYS: world.keys, SERVERS: world.servers}
    return {**own, **world.tenants}


@pytest.mark.parametrize(("change", "new"), CHANGES, ids=lambda one: type(one).__name__)
async def test_a_change_replaces_its_part_and_no_other(
    directory: Directory, change: Change, new: set[str]
) -> None:
    await directory.put(SETTLED)
    before = await directory.load()
    await directory.put((change,))
    after = await directory.load(before)
    was, now = parts_of(before), parts_of(after)
    assert {part for part, held in now.items() if held is not was.get(part)} == new
    assert after == await directory.load()


async def test_what_is_touched_and_stays_as_it_was_is_the_same_object(directory: Directory) -> None:
    await directory.put(SETTLED)
    before = await directory.load()
    await directory.put((AddTenant("acme"), SetAgent("acme", "clerk", None)))
    after = await directory.load(before)
    assert after.revision == before.revision + 1
    assert after.tenants["globex"] is before.tenants["globex"]
    assert after.tenants["acme"] == before.tenants["acme"]


async def test_nothing_new_reads_nothing(directory: Directory) -> None:
    await directory.put(SETTLED)
    before = await directory.load()
    after = await directory.load(before)
    assert after == before
    assert all(held is parts_of(before)[part] for part, held in parts_of(after).items())


def set_world(value: int) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        row = tables.revisions.update().where(tables.revisions.c.name == "world")
        connection.execute(row.values(value=value))

    return work


async def test_a_store_that_is_behind_is_read_whole(database: Database) -> None:
    """It was restored from a backup: what is newer here never happened."""
    directory = TableDirectory(database)
    await directory.put(SETTLED)
    later = World(revision=9, tenants={"ghost": (await directory.load()).tenants["acme"]})
    assert await directory.load(later) == await directory.load()


async def test_a_change_that_says_not_what_it_was_is_read_whole(database: Database) -> None:
    directory = TableDirectory(database)
    await directory.put(SETTLED)
    before = await directory.load()

    def by_hand(connection: Connection) -> None:
        connection.execute(tables.tenant_tool_flags.update().values(enabled=False))

    await database.write(by_hand)
    assert (await directory.load(before)).flags("globex") == {"echo": True}
    await database.write(set_world(before.revision + 1))
    assert (await directory.load(before)).flags("globex") == {"echo": False}


async def test_a_catalog_that_changed_is_everyones(database: Database) -> None:
    directory = TableDirectory(database)
    await directory.put(SETTLED)
    before = await directory.load()
    await database.write(bump)
    after = await directory.load(before)
    assert after.revision == before.revision + 1
    assert after.tenants["acme"] is before.tenants["acme"]


async def test_one_tenants_flag_leaves_a_thousand_tenants_alone(database: Database) -> None:
    directory = TableDirectory(database)
    await directory.put(tuple(SetTenantFlag(f"t{n}", "echo", enabled=True) for n in range(1_000)))
    before = await directory.load()
    await directory.put((SetTenantFlag("t500", "echo", enabled=False),))
    after = await directory.load(before)
    assert [name for name, held in after.tenants.items() if held is not before.tenants[name]] == [
        "t500"
    ]
    assert after.flags("t500") == {"echo": False}
    # More than are asked for by name.
    await directory.put(tuple(SetTenantFlag(f"t{n}", "echo", enabled=False) for n in range(600)))
    assert await directory.load(after) == await directory.load()


names = st.sampled_from(["acme", "globex"])
tools = st.sampled_from(["echo", "pay"])
flags = st.sampled_from([True, False, None])
layers = st.sampled_from([None, Layer(deny=("x",)), Layer(allow=())])
changes = st.one_of(
    st.builds(SetToolFlag, tools, flags),
    st.builds(SetTenantFlag, names, tools, flags),
    st.builds(AddTenant, names),
    st.builds(SetAgent, names, st.just("clerk")),
    st.builds(SetActivation, names, st.just("clerk"), tools, st.booleans()),
    st.builds(RemoveAgent, names, st.just("clerk")),
    st.builds(SetLayer, tools, layers, st.sampled_from(["", "r"]), st.sampled_from(["", "acme"])),
    st.builds(SetPersona, st.just("intern"), flags),
    st.builds(SetRestriction, st.just("intern"), tools, flags),
    st.builds(SetRelations, names, st.just((ANN,))),
    st.builds(SetRelations, names, st.just(()), st.just((ANN,))),
    st.builds(MarkRelations, names, st.sampled_from(["", "t1", "t2"])),
    st.builds(SetPlan, names, st.sampled_from([None, "free", "team"])),
    st.builds(SetBudget, names, tools, st.sampled_from([None, 1, 2])),
    st.builds(
        SetRateLimit,
        names | st.just(""),
        st.sampled_from(["", "intern"]),
        tools | st.just(""),
        st.sampled_from([None, RateLimit(calls=1, per=1.0)]),
    ),
    st.builds(SetPolicyModule, tools, st.sampled_from([None, "a", "b"])),
    st.just(AddKey(KEY)),
    st.just(RevokeKey(KEY.id)),
)


@settings(max_examples=some(12, 40))
@given(st.lists(st.lists(changes, min_size=1, max_size=3), max_size=12), st.data())
def test_reading_what_changed_gives_what_reading_all_gives(
    history: list[list[Change]], data: st.DataObject
) -> None:
    async def run() -> None:
        database = Sqlite(None)
        await migrate(database)
        table, twin = TableDirectory(database), MemoryDirectory()
        known = await table.load()
        for step in history:
            refused = [await made(directory, tuple(step)) for directory in (table, twin)]
            assert refused[0] == refused[1]
            if data.draw(st.booleans()):
                known = await table.load(known)
                assert known == await table.load()
            assert await table.load() == await twin.load()
            assert await table.relations("acme", limit=9) == await twin.relations("acme", limit=9)
        assert await table.load(known) == await table.load()
        await database.close()

    asyncio.run(run())


async def made(directory: Directory, changes: tuple[Change, ...]) -> bool:
    try:
        await directory.put(changes)
    except InvalidRequest:
        return False
    return True


def test_every_change_says_what_it_touches() -> None:
    for change, _ in CHANGES:
        assert touched((change, change)) == touched((change,)) != ()
