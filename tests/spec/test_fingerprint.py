"""The fingerprint is what a tool is: it survives writing and order, and nothing else."""

import random
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.spec.specs import FIELDS, HERE, rich
from toolgate.errors import InvalidSpecs
from toolgate.spec.document import canonical, sha256
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec, definition


def loaded(fields: dict[str, Any]) -> ToolSpec:
    """A spec, where these fields make one."""
    try:
        return read_tool(fields, origin=HERE)
    except InvalidSpecs:
        assume(False)  # noqa: FBT003
        raise


def again(spec: ToolSpec, **changed: Any) -> ToolSpec:
    """The spec read from its own definition, which leaves out what was not given."""
    given = definition(spec, but=("origin",))
    return read_tool(
        {key: value for key, value in given.items() if value is not None} | changed,
        origin=Origin("database", "elsewhere"),
    )


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).items())
        order.shuffle(items)
        return {key: shuffled(one, order) for key, one in items}
    if isinstance(value, list):
        return [shuffled(one, order) for one in cast("list[Any]", value)]
    return value


@pytest.mark.req("C1")
@given(fields=FIELDS)
def test_a_spec_that_loads_is_the_same_after_being_written_and_read(fields: dict[str, Any]) -> None:
    spec = loaded(fields)
    copy = again(spec)
    assert copy.fingerprint == spec.fingerprint
    assert definition(copy, but=("origin",)) == definition(spec, but=("origin",))


@pytest.mark.req("C1")
def test_a_spec_with_every_field_is_the_same_after_being_written_and_read() -> None:
    assert again(rich()).fingerprint == rich().fingerprint


@pytest.mark.req("C1")
@given(fields=FIELDS, order=st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_change_the_fingerprint(
    fields: dict[str, Any], order: random.Random
) -> None:
    assert loaded(shuffled(fields, order)).fingerprint == loaded(fields).fingerprint


CHANGES: dict[str, Any] = {
    "name": "other",
    "description": "Pay two.",
    "display_name": "Other",
    "version": "3",
    "category": "other",
    "categories": [],
    "tags": ["invoice", "more"],
    "input_schema": {
        "type": "object",
        "properties": {"invoice_id": {"type": "string", "default": "7"}},
    },
    "output_schema": {"type": "object"},
    "provider": "custom",
    "config": {"url": "https://example.com/steal"},
    "permissions": [],
    "side_effects": ["network_access"],
    "compensation": {"tool": "refund", "args": {"payment": "$result.other"}},
    "downstream_key": {"header": "Other-Key"},
    "probe": {"tool": "find_payment", "happened": "found", "result": "payment"},
    "requires_approval": False,
    "allowed_callers": ["direct"],
    "idempotency_key": [],
    "timeout": 31,
    "retry": {"attempts": 1, "base_delay": 3},
    "output_limit": 1001,
    "rate_limit": "61/minute",
    "costs": {"money": 2},
    "confirmation_prompt": "Pay?",
    "destructive": True,
    "execution": "queued",
}


@pytest.mark.req("C1")
@pytest.mark.parametrize("field", CHANGES)
def test_any_other_change_changes_the_fingerprint(field: str) -> None:
    assert again(rich(), **{field: CHANGES[field]}).fingerprint != rich().fingerprint


@pytest.mark.req("C1")
def test_every_field_but_two_is_part_of_the_fingerprint() -> None:
    # The effect, the confirmation and the resource come with fields that they depend on.
    together = {"effect", "requires_confirmation", "resource", "order_by", "queue_expires"}
    assert set(ToolSpec.__struct_fields__) == set(CHANGES) | together | {"enabled", "origin"}
    plain = {"name": "a", "provider": "http"}
    one = read_tool(plain, origin=HERE).fingerprint
    pure = plain | {"effect": "pure"}
    two = read_tool(pure, origin=HERE).fingerprint
    assert two != one
    assert read_tool(pure | {"resource": "notes://all"}, origin=HERE).fingerprint != two
    assert read_tool(plain | {"requires_confirmation": True}, origin=HERE).fingerprint != one


@pytest.mark.req("C1")
def test_being_switched_off_or_found_elsewhere_does_not_change_the_fingerprint() -> None:
    assert again(rich(), enabled=True).fingerprint == rich().fingerprint


@pytest.mark.req("C1")
@given(fields=FIELDS, other=FIELDS)
def test_two_specs_have_one_fingerprint_only_if_they_are_the_same(
    fields: dict[str, Any], other: dict[str, Any]
) -> None:
    one, two = loaded(fields), loaded(other)
    but = ("enabled", "origin")
    same = definition(one, but=but) == definition(two, but=but)
    assert (one.fingerprint == two.fingerprint) == same


@pytest.mark.req("C1")
def test_a_field_that_older_versions_do_not_know_counts_only_where_it_is_set() -> None:
    """Nodes of two versions agree on what a tool is."""
    schema = {"type": "object", "properties": {"account": {"type": "string"}}}
    plain = {"name": "a", "provider": "http", "input_schema": schema}
    one = read_tool(plain, origin=HERE)
    older = definition(one, but=("enabled", "origin", "execution", "order_by", "queue_expires"))
    assert one.fingerprint == sha256(canonical(older))
    queued = read_tool(plain | {"execution": "queued"}, origin=HERE).fingerprint
    ordered = plain | {"execution": "queued", "order_by": "account"}
    brief = plain | {"execution": "queued", "queue_expires": 60}
    more = {read_tool(other, origin=HERE).fingerprint for other in (ordered, brief)}
    assert len({one.fingerprint, queued, *more}) == 4
