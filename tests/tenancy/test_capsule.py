"""What an agent has: what its capsule says, or what its tenant has."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.tenancy.capsule import EVERYTHING, Activation, Capsule, Mode
from toolgate.tenancy.world import Tenant, World

pytestmark = pytest.mark.req("G1")
LISTED = Capsule(
    Mode.LISTED,
    MappingProxyType({"on": Activation(), "off": Activation(enabled=False)}),
)
ALL = Capsule(Mode.ALL, LISTED.activations)


@pytest.mark.parametrize(
    ("capsule", "tool", "has"),
    [
        (LISTED, "on", True),
        (LISTED, "off", False),
        (LISTED, "unlisted", False),
        (ALL, "on", True),
        (ALL, "off", False),
        (ALL, "unlisted", True),
        (EVERYTHING, "anything", True),
        (Capsule(Mode.LISTED), "anything", False),
    ],
)
def test_a_capsule_starts_from_everything_or_from_nothing(
    capsule: Capsule,
    tool: str,
    has: bool,  # noqa: FBT001
) -> None:
    assert capsule.has(tool) is has


names = st.sampled_from(["a", "b", "c"])


@given(st.dictionaries(names, st.booleans()), names)
def test_a_listed_capsule_has_nothing_that_an_open_one_lacks(
    flags: dict[str, bool], tool: str
) -> None:
    activations = MappingProxyType({name: Activation(on) for name, on in flags.items()})
    if Capsule(Mode.LISTED, activations).has(tool):
        assert Capsule(Mode.ALL, activations).has(tool)


def test_overrides_are_those_of_the_tool_and_of_no_other() -> None:
    strict = Activation(overrides=MappingProxyType({"approval": "always"}))
    capsule = Capsule(Mode.ALL, MappingProxyType({"mail.send": strict}))
    assert capsule.overrides("mail.send") == {"approval": "always"}
    assert capsule.overrides("echo") == {}


def test_an_agent_without_a_capsule_has_what_its_tenant_has() -> None:
    world = World(tenants={"acme": Tenant(capsules={"clerk": LISTED})})
    assert world.capsule("acme", "clerk") is LISTED
    assert world.capsule("acme", "other") is EVERYTHING
    assert world.capsule("globex", "clerk") is EVERYTHING


def test_a_tenants_flags_are_its_own() -> None:
    world = World(tenants={"acme": Tenant(flags={"echo": False})})
    assert world.flags("acme") == {"echo": False}
    assert world.flags("globex") == {}
