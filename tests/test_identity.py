"""Names that cannot be mistaken for each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.errors import InvalidRequest
from toolgate.identity import plain
from toolgate.tenancy.keys import Role
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

GOOD = ["acme", "a", "0", "acme-2_b", "x" * 63]
BAD = {
    "empty": "",
    "case": "Acme",
    "space before": " acme",
    "space after": "acme ",
    "line after": "acme\n",
    "tab": "ac\tme",
    "NUL": "acme\0",
    "Cyrillic a": "аcme",  # noqa: RUF001  a look-alike on purpose
    "full width": "ａcme",  # noqa: RUF001
    "combining": "acme\u0301",
    "zero width": "ac\u200bme",
    "direction": "\u202eacme",
    "other digits": "acme٣",
    "dotless i": "\u0131tem",
    "half a pair": "acme\ud800",
    "too long": "x" * 64,
    "first sign": "-acme",
    "path": "../acme",
    "glob": "ac*",
    "quote": "ac'me",
    "separator": "acme/clerk",
    "dots": "a.b",
}


@pytest.mark.parametrize("name", GOOD)
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    assert plain("tenant", name) == name


@pytest.mark.parametrize("name", BAD.values(), ids=BAD)
def test_a_name_that_could_be_mistaken_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot name a tenant") as refused:
        plain("tenant", name)
    refused.value.message.encode()


@given(st.text())
def test_what_is_taken_has_only_one_spelling(name: str) -> None:
    try:
        taken = plain("agent", name)
    except InvalidRequest:
        return
    assert taken.isascii()
    assert taken == taken.lower() == taken.strip()


def test_a_refusal_does_not_repeat_all_it_was_given() -> None:
    with pytest.raises(InvalidRequest) as refused:
        plain("tenant", "x" * 100_000)
    assert len(refused.value.message) < 300


@pytest.mark.parametrize("name", BAD.values(), ids=BAD)
async def test_no_way_to_put_somebody_on_record_takes_such_a_name(name: str) -> None:
    directory = MemoryDirectory()
    tenancy = Tenancy(directory)
    attempts = [
        lambda: tenancy.add_tenant(name),
        lambda: tenancy.set_agent(name, "clerk"),
        lambda: tenancy.set_agent("acme", name),
        lambda: tenancy.activate(name, "clerk", "echo"),
        lambda: tenancy.activate("acme", name, "echo"),
        lambda: tenancy.set_tenant_tool(name, "echo", enabled=True),
        lambda: tenancy.add_key(Role.AGENT, tenant=name, agent="clerk"),
        lambda: tenancy.add_key(Role.AGENT, tenant="acme", agent=name),
        lambda: tenancy.add_key(Role.ADMIN, tenant=name),
        lambda: tenancy.remove_agent(name, "clerk"),
        lambda: tenancy.remove_agent("acme", name),
        lambda: tenancy.relate(name, add=["tool:pay#executor@user:ann"]),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidRequest):
            await attempt()
    assert await directory.revision() == 0


async def test_the_same_ways_take_a_plain_name() -> None:
    """The control."""
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.add_tenant("acme")
    await tenancy.set_agent("acme", "clerk")
    await tenancy.activate("globex", "seller", "echo")
    await tenancy.set_tenant_tool("acme", "echo", enabled=True)
    await tenancy.add_key(Role.AGENT, tenant="acme", agent="clerk")
    await tenancy.add_key(Role.ADMIN, tenant="acme")
    assert tenancy.world.tenants.keys() == {"acme", "globex"}
