"""One suite for every directory: the twin in memory, SQLite and PostgreSQL."""

import asyncio
from types import MappingProxyType

import pytest

from toolgate.errors import InvalidRequest
from toolgate.tenancy import keys
from toolgate.tenancy.capsule import Activation, Capsule, Mode
from toolgate.tenancy.changes import (
    AddKey,
    AddTenant,
    Change,
    ExpireKey,
    RevokeKey,
    SetActivation,
    SetAgent,
    SetTenantFlag,
    SetToolFlag,
)
from toolgate.tenancy.directory import Directory
from toolgate.tenancy.keys import Role
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tenancy.world import World

pytestmark = pytest.mark.req("D1", "G1")
ACME, CLERK = AddTenant("acme"), SetAgent("acme", "clerk")


async def test_nobody_is_in_a_new_world(directory: Directory) -> None:
    assert await directory.revision() == 0
    assert await directory.load() == World()


@pytest.mark.parametrize(
    "change",
    [
        ACME,
        SetToolFlag("echo", enabled=False),
        SetTenantFlag("acme", "echo", enabled=True),
        AddKey(keys.make(Role.ADMIN, tenant="acme").key),
    ],
    ids=lambda change: type(change).__name__,
)
async def test_every_change_raises_the_revision_by_one(
    directory: Directory, change: Change
) -> None:
    await directory.put((ACME, CLERK))
    before = await directory.revision()
    await directory.put((change,))
    assert await directory.revision() == before + 1
    assert (await directory.load()).revision == before + 1


async def test_many_changes_at_once_are_one_revision(directory: Directory) -> None:
    await directory.put((ACME, CLERK, SetActivation("acme", "clerk", "echo")))
    assert await directory.revision() == 1


async def test_a_flag_for_everyone_is_set_changed_and_taken_back(directory: Directory) -> None:
    await directory.put((SetToolFlag("echo", enabled=False), SetToolFlag("add", enabled=True)))
    assert (await directory.load()).everyone.flags == {"echo": False, "add": True}
    await directory.put((SetToolFlag("echo", enabled=True),))
    assert (await directory.load()).everyone.flags == {"echo": True, "add": True}
    await directory.put((SetToolFlag("echo", None),))
    assert (await directory.load()).everyone.flags == {"add": True}
    await directory.put((SetToolFlag("never mentioned", None),))
    assert (await directory.load()).everyone.flags == {"add": True}


async def test_a_tenants_flag_is_its_own_and_can_be_taken_back(directory: Directory) -> None:
    theirs = SetTenantFlag("globex", "echo", enabled=True)
    await directory.put((SetTenantFlag("acme", "echo", enabled=False), theirs))
    world = await directory.load()
    assert world.flags("acme") == {"echo": False}
    assert world.flags("globex") == {"echo": True}
    await directory.put((SetTenantFlag("acme", "echo", enabled=True),))
    assert (await directory.load()).flags("acme") == {"echo": True}
    await directory.put((SetTenantFlag("acme", "echo", None),))
    world = await directory.load()
    assert world.flags("acme") == {}
    assert world.flags("globex") == {"echo": True}
    assert world.tenants.keys() == {"globex"}, "nothing else is said of acme"


async def test_a_tenant_added_twice_is_there_once(directory: Directory) -> None:
    await directory.put((ACME,))
    await directory.put((ACME, ACME))
    assert (await directory.load()).tenants.keys() == {"acme"}


async def test_an_agents_capsule_has_its_mode_and_its_tools(directory: Directory) -> None:
    await directory.put(
        (
            ACME,
            SetAgent("acme", "clerk", Mode.LISTED),
            SetActivation("acme", "clerk", "echo"),
            SetActivation("acme", "clerk", "add", enabled=False),
        )
    )
    capsule = (await directory.load()).capsule("acme", "clerk")
    assert capsule.mode is Mode.LISTED
    assert capsule.activations == {"echo": Activation(), "add": Activation(enabled=False)}
    await directory.put((SetAgent("acme", "clerk", Mode.ALL),))
    assert (await directory.load()).capsule("acme", "clerk").mode is Mode.ALL


async def test_putting_an_agent_on_record_leaves_the_mode_of_one_that_exists(
    directory: Directory,
) -> None:
    await directory.put((ACME, SetAgent("acme", "new", None), SetAgent("acme", "old", Mode.LISTED)))
    await directory.put((SetAgent("acme", "old", None),))
    world = await directory.load()
    assert world.capsule("acme", "new").mode is Mode.ALL
    assert world.capsule("acme", "old").mode is Mode.LISTED


async def test_a_change_of_mode_keeps_the_tools(directory: Directory) -> None:
    await directory.put((ACME, CLERK, SetActivation("acme", "clerk", "echo", enabled=False)))
    await directory.put((SetAgent("acme", "clerk", Mode.LISTED),))
    assert (await directory.load()).capsule("acme", "clerk") == Capsule(
        Mode.LISTED, MappingProxyType({"echo": Activation(enabled=False)})
    )


async def test_overrides_come_back_as_they_were_and_are_replaced_whole(
    directory: Directory,
) -> None:
    overrides = {"approval": "always", "limits": {"per_hour": 3, "of": [1, 2.5, None, True, "é"]}}
    await directory.put((ACME, CLERK, SetActivation("acme", "clerk", "echo", overrides=overrides)))
    assert (await directory.load()).capsule("acme", "clerk").overrides("echo") == overrides
    await directory.put((SetActivation("acme", "clerk", "echo", overrides={"approval": "once"}),))
    world = await directory.load()
    assert world.capsule("acme", "clerk").overrides("echo") == {"approval": "once"}


async def test_what_was_loaded_does_not_change_afterwards(directory: Directory) -> None:
    overrides = {"approval": "always"}
    await directory.put((ACME, CLERK, SetActivation("acme", "clerk", "echo", overrides=overrides)))
    before = await directory.load()
    overrides["approval"] = "never"
    await directory.put((AddTenant("globex"), SetToolFlag("echo", enabled=False)))
    assert before.tenants.keys() == {"acme"}
    assert before.everyone.flags == {}
    assert before.capsule("acme", "clerk").overrides("echo") == {"approval": "always"}


async def test_the_same_names_in_two_tenants_are_different_agents(directory: Directory) -> None:
    await directory.put(
        (
            ACME,
            AddTenant("globex"),
            SetAgent("acme", "clerk", Mode.LISTED),
            SetAgent("globex", "clerk", Mode.ALL),
            SetActivation("acme", "clerk", "echo"),
            SetActivation("globex", "clerk", "echo", enabled=False),
        )
    )
    world = await directory.load()
    assert world.capsule("acme", "clerk").has("echo")
    assert not world.capsule("acme", "clerk").has("add")
    assert not world.capsule("globex", "clerk").has("echo")
    assert world.capsule("globex", "clerk").has("add")


@pytest.mark.req("V3")
async def test_a_key_is_found_by_its_digest_until_it_is_revoked(directory: Directory) -> None:
    one, two = (keys.make(Role.AGENT, tenant="acme", agent="clerk").key for _ in range(2))
    await directory.put((ACME, CLERK, AddKey(one), AddKey(two)))
    assert (await directory.load()).keys == {one.digest: one, two.digest: two}
    await directory.put((RevokeKey(one.id),))
    assert (await directory.load()).keys == {two.digest: two}
    await directory.put((RevokeKey(one.id),))
    assert (await directory.load()).keys == {two.digest: two}


REFUSED: dict[str, Change] = {
    "an agent of a tenant that is not there": SetAgent("globex", "clerk"),
    "a tool for an agent that is not there": SetActivation("acme", "ghost", "echo"),
    "a tool for the same name in another tenant": SetActivation("globex", "clerk", "echo"),
    "a key that is not there": RevokeKey("key_typo"),
    "a key for an agent that is not there": AddKey(
        keys.make(Role.AGENT, tenant="acme", agent="clrek").key
    ),
    "a key for a tenant that is not there": AddKey(keys.make(Role.ADMIN, tenant="globex").key),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
async def test_changes_are_made_all_or_not_at_all(directory: Directory, change: Change) -> None:
    await directory.put((ACME, CLERK))
    before = await directory.load()
    with pytest.raises(InvalidRequest):
        await directory.put((SetToolFlag("echo", enabled=False), AddTenant("initech"), change))
    assert await directory.load() == before
    assert await directory.revision() == before.revision


async def test_a_key_on_record_cannot_be_replaced(directory: Directory) -> None:
    mine = keys.make(Role.AGENT, tenant="acme", agent="clerk").key
    await directory.put((ACME, CLERK, AddKey(mine)))
    other = keys.make(Role.ADMIN, tenant="acme").key
    same_id = keys.Key(id=mine.id, digest=other.digest, role=Role.ADMIN, tenant="acme")
    same_digest = keys.Key(id=other.id, digest=mine.digest, role=Role.ADMIN, tenant="acme")
    for taken in (same_id, same_digest):
        with pytest.raises(InvalidRequest) as refused:
            await directory.put((AddKey(taken),))
        assert mine.digest not in str(refused.value)
    assert (await directory.load()).keys == {mine.digest: mine}


async def test_a_revoked_key_cannot_come_back(directory: Directory) -> None:
    key = keys.make(Role.ADMIN, tenant="acme").key
    await directory.put((ACME, AddKey(key), RevokeKey(key.id)))
    with pytest.raises(InvalidRequest):
        await directory.put((AddKey(key),))
    assert (await directory.load()).keys == {}


async def test_changes_made_at_once_are_all_made(directory: Directory) -> None:
    """In opposite orders: whoever locked rows one by one would cross here."""
    tools = ("echo", "add")
    await asyncio.gather(
        *(
            directory.put(
                tuple(
                    SetTenantFlag(f"tenant{number}", tool, enabled=True)
                    for tool in (tools if number % 2 else reversed(tools))
                )
                + tuple(
                    SetToolFlag(tool, enabled=bool(number % 2))
                    for tool in (tools if number % 2 else reversed(tools))
                )
            )
            for number in range(32)
        )
    )
    world = await directory.load()
    assert world.revision == 32
    assert len(world.tenants) == 32
    assert world.everyone.flags.keys() == set(tools)


async def test_first_keys_are_made_once_however_many_ask(directory: Directory) -> None:
    made = await asyncio.gather(
        *(Tenancy(directory).add_first_keys("demo", "assistant") for _ in range(8))
    )
    assert len([one for one in made if one is not None]) == 1
    assert len((await directory.load()).keys) == 2
    for key in (await directory.load()).keys.values():
        await directory.put((RevokeKey(key.id),))
    assert await Tenancy(directory).add_first_keys("demo", "assistant") is None


@pytest.mark.req("V3")
async def test_a_key_ends_when_it_is_said_and_no_later(directory: Directory) -> None:
    key = keys.make(Role.AGENT, tenant="acme", agent="clerk").key
    await directory.put((ACME, CLERK, AddKey(key)))
    for at_ns, end_ns in ((900, 900), (500, 500), (700, 500)):
        await directory.put((ExpireKey(key.id, at_ns),))
        [held] = (await directory.load()).keys.values()
        assert held.expires_ns == end_ns
        assert (held.id, held.created_ns) == (key.id, key.created_ns)
    await directory.put((RevokeKey(key.id),))
    for gone in (key.id, "key_none"):
        with pytest.raises(InvalidRequest, match="no key"):
            await directory.put((ExpireKey(gone, 1),))
    [told, *_] = [one for one in await directory.audit() if one.change == "expire_key"]
    assert (told.tenant, dict(told.details)) == ("acme", {"id": key.id, "at_ns": 700})


@pytest.mark.req("V3")
async def test_the_latest_use_of_a_key_is_kept_and_is_no_change(directory: Directory) -> None:
    key = keys.make(Role.ADMIN, tenant="acme").key
    await directory.put((ACME, AddKey(key)))
    before = await directory.revision()
    assert await directory.uses() == {}
    await directory.note_uses({key.id: 200})
    await directory.note_uses({key.id: 100})
    assert await directory.uses() == {key.id: 200}
    assert await directory.revision() == before
    assert (await directory.load()).keys == {key.digest: key}
