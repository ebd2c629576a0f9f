"""What a change says about whom and what nobody has heard of, and which names it refuses."""

import pytest

from toolgate.errors import InvalidRequest
from toolgate.tenancy import roster
from toolgate.tenancy.layer import Layer, Permissions
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("G4")


@pytest.mark.parametrize(
    ("tenant", "agent", "said"),
    [
        ("acmee", "", "no tenant 'acmee' on record; nothing was changed. Did you mean 'acme'?"),
        ("nope", "billing", "no tenant 'nope' on record; nothing was changed.$"),
        ("acme", "biling", "no agent 'biling' of tenant 'acme'.* Did you mean 'billing'?"),
    ],
)
async def test_who_is_not_on_record_is_refused_with_the_nearest(
    tenant: str, agent: str, said: str
) -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.set_agent("acme", "billing")
    with pytest.raises(InvalidRequest, match=said):
        roster.need(tenancy.world, tenant, agent)
    for fine in (("", ""), ("acme", ""), ("acme", "billing")):
        roster.need(tenancy.world, *fine)


async def test_whom_a_change_put_on_record_is_told() -> None:
    tenancy = Tenancy(MemoryDirectory())
    before = tenancy.world
    await tenancy.set_agent("acme", "billing")
    assert roster.newcomers(before, tenancy.world, "acme", "billing") == [
        "Tenant 'acme' was not on record; it is now.",
        "Agent 'billing' of tenant 'acme' was not on record; it is now.",
    ]
    assert roster.newcomers(before, before, "acme") == ["Tenant 'acme' is not on record."]
    assert roster.newcomers(tenancy.world, tenancy.world, "acme", "billing") == []
    assert roster.newcomers(before, before, "") == []


def test_names_that_no_tool_has_are_told_and_selectors_are_none() -> None:
    given = ["pya", "pay", "ns:pay", "group:read", "category:x", "mail.*"]
    assert roster.unheard(given, ["pay", "ns:pay"]) == [
        "No tool is called 'pya' so far. Did you mean 'pay'?"
    ]


def test_a_role_is_a_stranger_only_where_others_are_on_record() -> None:
    assert roster.strangers(["clrek", "clerk"], []) == []
    [told] = roster.strangers(["clrek", "clerk"], ["clerk"])
    assert told.endswith("who has it is refused. Did you mean 'clerk'?")


async def test_a_layer_that_denies_what_no_tool_is_called_is_refused() -> None:
    tools = ["pay", "refund"]
    tenancy = Tenancy(MemoryDirectory(), known=lambda: tools)
    layer = Layer(deny=("refund", "pya"))
    with pytest.raises(InvalidRequest, match=r"no tool 'pya'.*nothing was changed.*'pay'"):
        await tenancy.set_layer("house", layer)
    with pytest.raises(InvalidRequest, match="no tool 'pya'"):
        await tenancy.set_role("clerk", Permissions(forbidden_tools=("pya",)))
    assert tenancy.world.revision == -1
    # The controls: what is there, what is no name, and what is only allowed.
    fine = Layer(allow=("pya",), deny=("pay", "refund", "group:web", "category:x", "pya*"))
    await tenancy.set_layer("house", fine)
    tools.remove("refund")
    await tenancy.set_layer("house", Layer(deny=("refund",)))
    # Where nobody can tell which tools there are, every name is taken.
    await Tenancy(MemoryDirectory()).set_layer("house", layer)
