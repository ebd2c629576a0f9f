"""Object ids: no two names share one, none reaches into another tenant, and SpiceDB takes them."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolgate.engines.spicedb_ids import name_of, object_id

pytestmark = pytest.mark.req("G7")
ALLOWED = re.compile(r"[a-zA-Z0-9/_|\-=+]{1,1024}\Z")
tenants = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True)
# Signs that mean something in an id are common; so are names that are long in it.
signs = st.sampled_from("ab=+/|-_*2e3 .:@#\x00\x01é😀\ud800\U0010ffff")
names = st.one_of(
    st.text(signs, min_size=1, max_size=12),
    st.text(st.characters(), min_size=1, max_size=256),
    st.text(st.sampled_from("😀\U0010ffff\x00"), min_size=200, max_size=256),
)


@given(tenants, names)
@example("t" * 63, "\U0010ffff" * 256)
@example("t", "\x00" * 256)
def test_an_id_leads_back_to_its_name_and_to_no_other_tenant(tenant: str, name: str) -> None:
    id_ = object_id(tenant, name)
    assert id_ is not None
    assert ALLOWED.match(id_)
    assert name_of(tenant, id_) == name
    for other in (f"{tenant}x", tenant[:-1], "other-tenant"):
        assert name_of(other, id_) is None


@given(tenants, names, tenants, names)
@example("a", "b/c", "a-b", "c")
@example("a", ".", "a", "=2e=")
def test_two_names_never_share_an_id(one: str, name: str, other: str, second: str) -> None:
    same = object_id(one, name) == object_id(other, second)
    assert same == ((one, name) == (other, second))


@given(tenants, st.text(st.sampled_from("ab=+/|-_*2e3f"), max_size=40))
def test_what_others_wrote_is_a_name_only_where_it_is_ours(tenant: str, written: str) -> None:
    name = name_of(tenant, f"{tenant}/{written}")
    assert name is None or object_id(tenant, name) == f"{tenant}/{written}"


@pytest.mark.parametrize("name", ["", "x" * 2_000, "😀" * 700, "😀" * 100_000])
def test_a_name_that_no_relation_holds_has_no_id(name: str) -> None:
    assert object_id("acme", name) is None


@pytest.mark.parametrize("id_", ["acme", "acme/", "/a", "", "acme/=ffffffffffff=", "acme/+!"])
def test_a_foreign_id_is_nobodys_name(id_: str) -> None:
    assert name_of("acme", id_) is None
