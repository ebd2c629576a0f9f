"""What an operator says about layers, roles, personas, policies and keys, and under which name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from toolgate.errors import InvalidPolicy, InvalidRequest
from toolgate.tenancy.keys import Role
from toolgate.tenancy.layer import Layer, Permissions
from toolgate.tenancy.persona import Restriction
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

# Names that could be mistaken for others, or that no line can show.
ODD = {
    "empty": "",
    "space": "fin ance",
    "line": "finance\n",
    "NUL": "finance\0",
    "Cyrillic": "finаnce",  # noqa: RUF001  a look-alike on purpose
    "full width": "ｆinance",  # noqa: RUF001
    "zero width": "fin\u200bance",
    "direction": "\u202efinance",
    "half a pair": "finance\ud800",
    "slash": "finance/ops",
    "hash": "finance#ops",
    "too long": "x" * 65,
}
GOOD = "Finance_2.eu:ops@acme-1"


def verbs(tenancy: Tenancy, name: str) -> list[Callable[[], Awaitable[object]]]:
    """Every way to put such a name on record."""
    return [
        lambda: tenancy.set_layer(name, Layer()),
        lambda: tenancy.set_role(name, Permissions()),
        lambda: tenancy.remove_role(name),
        lambda: tenancy.set_persona(name, can_add_tools=True),
        lambda: tenancy.restrict(name, "pay"),
    ]


def odder(tenancy: Tenancy, name: str) -> list[Callable[[], Awaitable[object]]]:
    """Those that take the empty name for none."""
    return [
        lambda: tenancy.set_layer("house", Layer(), role=name),
        lambda: tenancy.add_key(Role.ADMIN, tenant="acme", persona=name),
    ]


@pytest.mark.req("G4", "G5")
@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
async def test_a_name_that_could_be_mistaken_is_refused(name: str) -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.add_tenant("acme")
    for verb in verbs(tenancy, name) + (odder(tenancy, name) if name else []):
        with pytest.raises(InvalidRequest) as refused:
            await verb()
        refused.value.message.encode()
        assert len(refused.value.message) < 300
    with pytest.raises(InvalidRequest):
        await tenancy.add_key(Role.ADMIN, tenant="acme", roles=[name])
    assert tenancy.world.revision == 1


@pytest.mark.req("G4", "G5")
async def test_the_same_ways_take_a_plain_name() -> None:
    """The control."""
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.add_tenant("acme")
    await tenancy.set_role(GOOD, Permissions())
    for verb in verbs(tenancy, GOOD) + odder(tenancy, GOOD):
        await verb()
    assert await tenancy.add_key(Role.ADMIN, tenant="acme", roles=[GOOD])


@pytest.mark.req("G4")
@pytest.mark.parametrize(
    "layer",
    [
        Layer(allow=("group:raed",)),
        Layer(deny=("group:",)),
        Layer(deny=("category:",)),
        Layer(deny=("mail send",)),
        Layer(deny=("",)),
        Layer(reason="a\nb"),
        Layer(reason="x" * 501),
    ],
    ids=repr,
)
async def test_a_layer_that_would_not_hold_is_not_stored(layer: Layer) -> None:
    tenancy = Tenancy(MemoryDirectory())
    with pytest.raises(InvalidRequest):
        await tenancy.set_layer("house", layer)
    assert tenancy.world.revision == -1
    await tenancy.set_layer("house", Layer(allow=("group:read",), deny=("mail.*",)))
    assert tenancy.world.everyone.layers


@pytest.mark.req("G4")
async def test_one_text_in_place_of_several_is_not_taken_letter_by_letter() -> None:
    tenancy = Tenancy(MemoryDirectory())
    text: Any = "pay"
    for layer in (Layer(deny=text), Layer(allow=text)):
        with pytest.raises(InvalidRequest):
            await tenancy.set_layer("house", layer)
    with pytest.raises(InvalidRequest):
        await tenancy.set_role("clerk", Permissions(forbidden_tools=text))
    listed: Any = ["pay"]
    await tenancy.set_layer("house", Layer(deny=listed))
    assert tenancy.world.everyone.layers["", "house"].deny == ("pay",)


@pytest.mark.req("G5")
async def test_a_roles_flat_permissions_become_its_layer_and_go_with_it() -> None:
    tenancy = Tenancy(MemoryDirectory())
    flat = Permissions(
        allowed_categories=("data",), allowed_tools=("echo",), forbidden_tools=("rm",)
    )
    await tenancy.set_role("clerk", flat)
    await tenancy.set_layer("more", Layer(deny=("pay",)), role="clerk")
    await tenancy.set_role("clerk", flat, tenant="acme")
    await tenancy.set_layer("house", Layer(deny=("x",)))
    layers = tenancy.world.everyone.layers
    assert layers["clerk", "permissions"].allow == ("echo", "category:data!web")
    assert layers["clerk", "permissions"].deny == ("rm",)
    with pytest.raises(InvalidRequest, match="Did you mean 'clerk'"):
        await tenancy.remove_role("clerks")
    await tenancy.remove_role("clerk")
    assert tenancy.world.everyone.layers.keys() == {("", "house")}
    assert tenancy.world.tenant("acme").layers
    await tenancy.remove_role("clerk", tenant="acme")
    assert not tenancy.world.tenant("acme").layers
    with pytest.raises(InvalidRequest, match="no role 'clerk' in tenant 'acme'"):
        await tenancy.remove_role("clerk", tenant="acme")


@pytest.mark.req("G5")
async def test_a_restriction_cannot_miss_its_tool_by_a_typo() -> None:
    tenancy = Tenancy(MemoryDirectory(), known=lambda: ["pay"])
    with pytest.raises(InvalidRequest, match="Did you mean 'pay'"):
        await tenancy.restrict("intern", "pya")
    await tenancy.restrict("intern", "pay", reason="needs a clerk")
    restrictions = tenancy.world.persona("intern").restrictions
    assert restrictions == {"pay": Restriction(allowed=False, reason="needs a clerk")}
    await tenancy.restrict("intern", "pay", allowed=None)
    await tenancy.restrict("intern", "gone", allowed=None)
    assert not tenancy.world.everyone.personas


@pytest.mark.req("G3")
async def test_a_policy_is_checked_with_all_the_others_before_it_is_stored() -> None:
    seen: list[Mapping[str, str]] = []

    def check(modules: Mapping[str, str]) -> None:
        seen.append(dict(modules))
        if "broken" in modules.values():
            raise InvalidPolicy(["a.rego:1: broken"])

    directory = MemoryDirectory()
    tenancy = Tenancy(directory, check=check)
    await Tenancy(directory).set_policy_module("theirs", "package theirs")
    await tenancy.set_policy_module("mine", "package mine")
    assert seen == [{"theirs": "package theirs", "mine": "package mine"}]
    before = await directory.revision()
    with pytest.raises(InvalidPolicy):
        await tenancy.set_policy_module("mine", "broken")
    assert await directory.revision() == before
    assert tenancy.world.everyone.policies["mine"] == "package mine"
    await tenancy.set_policy_module("theirs", None)
    assert seen[-1] == {"mine": "package mine"} == tenancy.world.everyone.policies


@pytest.mark.req("G3")
@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "../a", "a.rego", "x" * 65, "\u0430"])
async def test_a_policy_has_a_plain_name(name: str) -> None:
    tenancy = Tenancy(MemoryDirectory())
    with pytest.raises(InvalidRequest, match="cannot name a policy"):
        await tenancy.set_policy_module(name, "package a")
    await tenancy.set_policy_module("a-b_1", "package a")


@pytest.mark.req("G3")
@pytest.mark.parametrize("text", ["a\0b", "a\ud800", "x" * 1_000_001], ids=["NUL", "half", "long"])
async def test_a_policy_is_text_that_can_be_kept(text: str) -> None:
    tenancy = Tenancy(MemoryDirectory())
    with pytest.raises(InvalidRequest, match="A policy"):
        await tenancy.set_policy_module("a", text)
    assert tenancy.world.revision == -1


@pytest.mark.req("V3")
async def test_who_runs_a_tenant_has_a_key_of_the_tenant_and_of_no_agent() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_agent("acme", "clerk")
    with pytest.raises(InvalidRequest, match="names no agent"):
        await tenancy.add_key(Role.TENANT_ADMIN, tenant="acme", agent="clerk")
    with pytest.raises(InvalidRequest):
        await tenancy.add_key(Role.TENANT_ADMIN, tenant="")
    fresh = await tenancy.add_key(Role.TENANT_ADMIN, tenant="acme")
    assert (fresh.key.role, fresh.key.tenant, fresh.key.agent) == (Role.TENANT_ADMIN, "acme", "")


@pytest.mark.req("V3")
@pytest.mark.parametrize("user", ["ann smith", "ann\n", "ann#member", "x" * 257, "an\u200bn"])
async def test_a_keys_user_is_one_that_a_relation_can_name(user: str) -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_agent("acme", "clerk")
    with pytest.raises(InvalidRequest, match="cannot name a user"):
        await tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk", user=user)
    fresh = await tenancy.add_key(
        Role.AGENT, tenant="acme", agent="clerk", user="ann@example.com", roles=["finance"]
    )
    assert (fresh.key.user, fresh.key.roles) == ("ann@example.com", ("finance",))


@pytest.mark.req("V3")
async def test_an_agent_that_is_removed_is_shut_out_and_the_same_name_elsewhere_is_not() -> None:
    tenancy = Tenancy(MemoryDirectory())
    made: dict[str, str] = {}
    for tenant in ("acme", "globex"):
        await tenancy.set_agent(tenant, "clerk", "listed")
        fresh = await tenancy.add_key(Role.AGENT, tenant=tenant, agent="clerk")
        made[tenant] = fresh.key.digest
    await tenancy.remove_agent("acme", "clerk")
    assert tenancy.world.keys.keys() == {made["globex"]}
    assert tenancy.world.tenant("globex").capsules.keys() == {"clerk"}
    with pytest.raises(InvalidRequest, match="There is no agent"):
        await tenancy.remove_agent("acme", "clerk")
