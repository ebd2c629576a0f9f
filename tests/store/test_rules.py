"""Layers, personas, relations, policies and agents that go, in every directory."""

import pytest

from toolgate.errors import InvalidRequest
from toolgate.tenancy import keys
from toolgate.tenancy.capsule import EVERYTHING, NOTHING, Capsule, Mode, NewerMessages
from toolgate.tenancy.changes import (
    AddKey,
    AddTenant,
    Change,
    MarkRelations,
    RemoveAgent,
    SetActivation,
    SetAgent,
    SetLayer,
    SetNewerMessages,
    SetPersona,
    SetPolicyModule,
    SetRelations,
    SetRestriction,
    SetToolFile,
    SetToolFlag,
)
from toolgate.tenancy.directory import Directory
from toolgate.tenancy.keys import Key, Role
from toolgate.tenancy.layer import Layer
from toolgate.tenancy.persona import Persona, Restriction
from toolgate.tenancy.relation import parse
from toolgate.tenancy.world import NOBODY, Tenant

pytestmark = pytest.mark.req("D1")
ACME, CLERK = AddTenant("acme"), SetAgent("acme", "clerk")
ANN, BOB = parse("tool:pay#executor@user:ann"), parse("tool:pay#owner@group:finance#member")
NARROW = Layer(allow=("group:read", "echo"), deny=("mail.*",), reason="reads only")


@pytest.mark.req("G4")
async def test_a_layer_is_stored_replaced_and_taken_away(directory: Directory) -> None:
    open_ = Layer(deny=("shell",))
    await directory.put(
        (
            SetLayer("house", open_),
            SetLayer("house", NARROW, role="clerk"),
            SetLayer("house", NARROW, tenant="acme"),
            SetLayer("house", open_, role="clerk", tenant="acme"),
        )
    )
    world = await directory.load()
    assert world.everyone.layers == {("", "house"): open_, ("clerk", "house"): NARROW}
    assert world.tenant("acme").layers == {("", "house"): NARROW, ("clerk", "house"): open_}
    assert world.tenant("globex") == NOBODY
    await directory.put((SetLayer("house", NARROW), SetLayer("house", None, tenant="acme")))
    world = await directory.load()
    assert world.everyone.layers["", "house"] == NARROW
    assert world.tenant("acme").layers == {("clerk", "house"): open_}
    await directory.put((SetLayer("house", None, role="clerk", tenant="acme"),))
    assert (await directory.load()).tenants == {}


@pytest.mark.req("G4")
async def test_a_layer_that_allows_nothing_is_not_one_that_leaves_all(directory: Directory) -> None:
    nothing, all_ = Layer(allow=()), Layer(allow=None)
    await directory.put((SetLayer("nothing", nothing), SetLayer("all", all_)))
    layers = (await directory.load()).everyone.layers
    assert layers["", "nothing"].allow == ()
    assert layers["", "all"].allow is None


@pytest.mark.req("G5")
async def test_what_a_persona_is_kept_from_comes_with_its_reason(directory: Directory) -> None:
    await directory.put(
        (
            SetPersona("intern", can_add_tools=False),
            SetRestriction("intern", "pay", allowed=False, reason="needs a clerk"),
            SetRestriction("clerk", "pay", allowed=True),
        )
    )
    assert (await directory.load()).everyone.personas == {
        "intern": Persona(
            can_add_tools=False,
            restrictions={"pay": Restriction(allowed=False, reason="needs a clerk")},
        ),
        "clerk": Persona(restrictions={"pay": Restriction(allowed=True)}),
    }
    await directory.put((SetRestriction("intern", "pay", allowed=True), SetPersona("intern", None)))
    world = await directory.load()
    assert world.persona("intern") == Persona(restrictions={"pay": Restriction(allowed=True)})
    taken = tuple(SetRestriction(one, "pay", None) for one in ("intern", "clerk", "nobody"))
    await directory.put(taken)
    assert (await directory.load()).everyone.personas == {}


@pytest.mark.req("G3")
async def test_policy_modules_are_kept_by_name(directory: Directory) -> None:
    text = 'package toolgate\n\nallow := "é" == "é"\n'
    await directory.put((SetPolicyModule("a", text), SetPolicyModule("b", "package b")))
    assert (await directory.load()).everyone.policies == {"a": text, "b": "package b"}
    await directory.put((SetPolicyModule("a", "package a"), SetPolicyModule("b", None)))
    assert (await directory.load()).everyone.policies == {"a": "package a"}


@pytest.mark.req("C2")
async def test_tool_files_are_kept_by_name(directory: Directory) -> None:
    text = "tools: []  # é\n"
    await directory.put((SetToolFile("b", "tools: []"), SetToolFile("a", text)))
    assert await directory.tool_files() == {"a": text, "b": "tools: []"}
    await directory.put((SetToolFile("a", "{}"), SetToolFile("b", None), SetToolFile("c", None)))
    assert await directory.tool_files() == {"a": "{}"}
    [newest, *_] = await directory.audit(limit=1)
    assert newest.change == "set_tool_file"


@pytest.mark.req("G1")
async def test_relations_are_added_and_removed_however_often(directory: Directory) -> None:
    await directory.put((SetRelations("acme", add=(ANN, BOB)),))
    await directory.put((SetRelations("acme", add=(BOB, ANN, ANN)),))
    await directory.put((SetRelations("globex", add=(ANN,)),))
    assert await directory.relations("acme", limit=10) == sorted([ANN, BOB])
    assert await directory.relations("acme", limit=1) == [min(ANN, BOB)]
    assert await directory.relations("acme", limit=9, after=min(ANN, BOB)) == [max(ANN, BOB)]
    assert await directory.relations("acme", limit=9, after=max(ANN, BOB)) == []
    await directory.put((SetRelations("acme", remove=(ANN,)),))
    await directory.put((SetRelations("acme", remove=(ANN,)),))
    assert await directory.relations("acme", limit=10) == [BOB]
    assert await directory.relations("globex", limit=10) == [ANN]
    assert await directory.relations("initech", limit=10) == []


@pytest.mark.req("G1")
async def test_the_revision_of_the_last_change_of_relations_is_the_tenants_own(
    directory: Directory,
) -> None:
    await directory.put((ACME, AddTenant("globex")))
    await directory.put((SetRelations("acme", add=(ANN,)),))
    await directory.put((SetToolFlag("echo", enabled=True), CLERK))
    world = await directory.load()
    assert (world.tenant("acme").relations, world.tenant("globex").relations) == (2, 0)
    await directory.put((SetRelations("acme", remove=(ANN,)),))
    assert (await directory.load()).tenant("acme").relations == 4


@pytest.mark.req("G7")
async def test_relations_kept_elsewhere_leave_their_token_and_nothing_else(
    directory: Directory,
) -> None:
    first, second = "t1", "t2"
    await directory.put((MarkRelations("acme", first, add=(ANN,)),))
    assert (await directory.load()).tenant("acme") == Tenant(relations=1, relations_token=first)
    assert await directory.relations("acme", limit=10) == []
    await directory.put((MarkRelations("acme", ""),))
    assert (await directory.load()).tenant("acme") == Tenant(relations=2, relations_token=first)
    await directory.put((MarkRelations("acme", second),))
    assert (await directory.load()).tenant("acme") == Tenant(relations=3, relations_token=second)


@pytest.mark.req("V3")
async def test_an_agent_that_goes_takes_its_capsule_and_its_keys_with_it(
    directory: Directory,
) -> None:
    mine, other = (keys.make(Role.AGENT, tenant="acme", agent=one).key for one in ("clerk", "x"))
    theirs = keys.make(Role.AGENT, tenant="globex", agent="clerk").key
    await directory.put(
        (
            *(ACME, CLERK, SetAgent("acme", "x"), SetActivation("acme", "clerk", "echo")),
            *(AddTenant("globex"), SetAgent("globex", "clerk")),
            *map(AddKey, (mine, other, theirs)),
        )
    )
    await directory.put((RemoveAgent("acme", "clerk"),))
    world = await directory.load()
    assert world.tenant("acme").capsules.keys() == {"x"}
    assert world.tenant("globex").capsules.keys() == {"clerk"}
    assert world.keys.keys() == {other.digest, theirs.digest}
    await directory.put((CLERK,))
    world = await directory.load()
    assert not world.capsule("acme", "clerk").activations
    assert mine.digest not in world.keys, "who comes back does not find the old key open"
    for change in (RemoveAgent("acme", "ghost"), RemoveAgent("initech", "clerk")):
        with pytest.raises(InvalidRequest, match="There is no agent"):
            await directory.put((change,))


@pytest.mark.req("V3")
async def test_the_name_of_an_agent_that_is_gone_has_nothing_until_there_is_one_again(
    directory: Directory,
) -> None:
    await directory.put((ACME, SetAgent("acme", "clerk", Mode.LISTED)))
    await directory.put((SetNewerMessages("acme", "clerk", NewerMessages.ABSORB),))
    await directory.put((RemoveAgent("acme", "clerk"),))
    world = await directory.load()
    assert world.tenant("acme").removed == {"clerk"}
    assert not world.tenant("acme").capsules
    assert world.capsule("acme", "clerk") == NOTHING
    assert world.capsule("acme", "another") == EVERYTHING
    assert world.capsule("globex", "clerk") == EVERYTHING
    for change in (
        RemoveAgent("acme", "clerk"),
        SetActivation("acme", "clerk", "echo"),
        SetNewerMessages("acme", "clerk", NewerMessages.QUEUE),
        AddKey(keys.make(Role.AGENT, tenant="acme", agent="clerk").key),
    ):
        with pytest.raises(InvalidRequest):
            await directory.put((change,))
    assert await directory.load() == world
    for mode in (None, Mode.LISTED):
        await directory.put((SetAgent("acme", "clerk", mode),))
        after = await directory.load(world)
        assert after.tenant("acme").removed == frozenset()
        assert after.capsule("acme", "clerk") == Capsule(mode or Mode.ALL), "a fresh one"
        await directory.put((RemoveAgent("acme", "clerk"),))
        assert (await directory.load(after)).capsule("acme", "clerk") == NOTHING


@pytest.mark.req("V3")
async def test_a_key_stands_for_a_user_a_persona_and_roles(directory: Directory) -> None:
    key = keys.make(
        Role.AGENT,
        tenant="acme",
        agent="clerk",
        user="ann@example.com",
        persona="intern",
        roles=("finance", "reader"),
    ).key
    boss = keys.make(Role.TENANT_ADMIN, tenant="acme").key
    await directory.put((ACME, CLERK, AddKey(key), AddKey(boss)))
    found: dict[str, Key] = dict((await directory.load()).keys)
    assert found == {key.digest: key, boss.digest: boss}


@pytest.mark.parametrize(
    "change",
    [SetRelations("acme", add=(ANN,)), SetPolicyModule("a", "x"), SetLayer("a", NARROW)],
    ids=lambda change: type(change).__name__,
)
async def test_a_rule_beside_a_change_that_cannot_be_made_is_not_made(
    directory: Directory, change: Change
) -> None:
    with pytest.raises(InvalidRequest):
        await directory.put((change, RemoveAgent("acme", "ghost")))
    assert await directory.revision() == 0
    assert await directory.relations("acme", limit=1) == []
    await directory.put((change,))
    assert await directory.revision() == 1
