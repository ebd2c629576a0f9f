"""Names that a model's API takes, and the way back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.specs import NAMES
from toolgate.errors import NameClash
from toolgate.spec import names
from toolgate.spec.names import for_model, from_model, is_name

THEIRS = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


@pytest.mark.req("C3")
@given(name=NAMES)
def test_every_name_becomes_one_that_a_models_api_takes(name: str) -> None:
    assert is_name(name)
    assert THEIRS.match(for_model(name))
    assert from_model([name])[for_model(name)] == name


@pytest.mark.req("C3")
@given(given_names=st.lists(NAMES, unique=True, max_size=30))
def test_every_name_maps_back_to_its_own_tool(given_names: list[str]) -> None:
    back = from_model(given_names)
    assert {back[for_model(name)] for name in given_names} == set(given_names)
    assert len(back) == len(given_names)


@pytest.mark.req("C3")
def test_a_name_that_can_stay_stays() -> None:
    assert for_model("pay_invoice-2") == "pay_invoice-2"
    assert for_model("a" * 64) == "a" * 64
    assert for_model("a" * 65) != "a" * 65
    assert for_model("billing.pay").startswith("billing_pay_")


SERVED = [
    ("mcp:files:read", "mcp__files__read"),
    ("mcp:my_files-2:read_all", "mcp__my_files-2__read_all"),
    ("mcp:files:_read", "mcp__files___read"),
    ("mcp:files:read__all", "mcp__files__read__all"),
]


@pytest.mark.req("C3")
@pytest.mark.parametrize(("name", "theirs"), SERVED)
def test_a_tool_of_a_server_has_no_digits_where_its_parts_can_be_told_apart(
    name: str, theirs: str
) -> None:
    assert for_model(name) == theirs


@pytest.mark.req("C3")
@pytest.mark.parametrize(
    "name",
    [
        "mcp:fi__les:read",
        "mcp:files_:read",
        "mcp:files:read.all",
        "mcp:files:read:all",
        "mcp:files:read_0123abcd",
        f"mcp:files:{'a' * 54}",
        "mcp__files__read",
        "mcp:files",
    ],
)
def test_any_other_has_digits(name: str) -> None:
    assert re.match(r".*_[0-9a-f]{8}\Z", for_model(name))


@pytest.mark.req("C3")
@given(
    given_names=st.lists(
        st.from_regex(r"\Amcp(:|_{1,3})[a_]{1,4}(:|_{1,3})[a_]{1,4}\Z"), unique=True, max_size=30
    )
)
def test_no_two_tools_of_servers_meet(given_names: list[str]) -> None:
    assert len(from_model(given_names)) == len(given_names)


@pytest.mark.req("C3")
def test_a_tool_cannot_take_anothers_place_by_its_mapped_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = "mcp:files:read"
    thief = for_model(honest)
    back = from_model([thief, honest])
    assert back[for_model(honest)] == honest
    assert back[for_model(thief)] == thief
    # Without the guard the thief is known by the very name that the honest tool was given.
    monkeypatch.setattr(names, "_MAPPED", re.compile(r"(?!)"))
    assert for_model(thief) == for_model(honest)


@pytest.mark.req("C3")
def test_two_tools_that_would_be_known_alike_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_MAPPED", re.compile(r"(?!)"))
    honest = "mcp:files:read"
    with pytest.raises(NameClash, match="Rename one of them"):
        from_model([for_model(honest), honest])
    assert from_model([honest, honest])[for_model(honest)] == honest, "positive control"


@pytest.mark.req("C1")
@pytest.mark.parametrize("name", ["", "1a", "-a", ".a", "a b", "a\n", "\u0430", "a" * 129, "a\x00"])
def test_what_is_no_name_is_known(name: str) -> None:
    assert not is_name(name)
