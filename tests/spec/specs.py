"""Specs for the tests of this room: read from fields, as a source reads them."""

from typing import Any

import pytest
from hypothesis import strategies as st

from toolgate.errors import InvalidSpecs
from toolgate.sources.text import parse
from toolgate.spec.effect import Permission, SideEffect
from toolgate.spec.problem import Problem
from toolgate.spec.reader import read_tool, read_tools
from toolgate.spec.tool import Origin, ToolSpec

HERE = Origin("file", "tools.yaml")


def spec(**fields: Any) -> ToolSpec:
    """A spec of these fields, and a name."""
    return read_tool({"name": "pay", "provider": "http"} | fields, origin=HERE)


def read(text: str, file: str = "tools.yaml") -> list[ToolSpec]:
    """The specs of a tool file."""
    found = parse(text.encode(), file=file)
    return read_tools(found.value, file=file, origin=HERE, line_of=found.line_of)


def problems(text: str, file: str = "tools.yaml") -> list[Problem]:
    """What is wrong with a tool file."""
    with pytest.raises(InvalidSpecs) as refusal:
        read(text, file)
    return [problem for problem in refusal.value.problems if isinstance(problem, Problem)]


def sentences(**fields: Any) -> list[str]:
    """What is said about a tool of these fields."""
    with pytest.raises(InvalidSpecs) as refusal:
        spec(**fields)
    return [str(problem) for problem in refusal.value.problems]


def rich() -> ToolSpec:
    """A spec that uses every field."""
    return read_tool(
        {
            "name": "billing:pay/invoice",
            "description": "Pay an open invoice.",
            "display_name": "Pay invoice",
            "version": "2",
            "category": "finance",
            "categories": ["money"],
            "tags": ["invoice"],
            "input_schema": {
                "type": "object",
                "properties": {
                    "invoice_id": {"type": "string", "description": "Which invoice."},
                    "amount": {"type": "number", "default": 0},
                    "note": True,
                },
                "required": ["invoice_id"],
            },
            "output_schema": {"type": "object", "properties": {"payment_id": {"type": "string"}}},
            "provider": "http",
            "config": {"url": "https://example.com/pay", "headers": {"Authorization": "s3cret"}},
            "enabled": False,
            "permissions": ["network"],
            "side_effects": ["network_access", "system_state"],
            "effect": "compensatable",
            "compensation": {
                "tool": "refund",
                "args": {"payment": "$result.payment_id"},
                "window": 3_600,
            },
            "downstream_key": {"header": "Idempotency-Key"},
            "probe": {
                "tool": "find_payment",
                "args": {"invoice": "$args.invoice_id", "reference": "$key"},
                "happened": "found",
                "result": "payment",
            },
            "requires_confirmation": True,
            "confirmation_prompt": "Really pay?",
            "requires_approval": True,
            "allowed_callers": ["direct", "chain"],
            "idempotency_key": ["invoice_id"],
            "timeout": 30,
            "retry": 1,
            "output_limit": 1000,
            "rate_limit": "60/minute",
            "costs": {"money": "$result.amount", "invoices": 1},
        },
        origin=HERE,
    )


WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=9)
PROSE = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs"]), max_size=30)
NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_.:/-]{0,127}\Z")
Drawn = st.SearchStrategy[Any]
JSON: Drawn = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | PROSE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PROSE, inner, max_size=3),
    max_leaves=8,
)
LEAVES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object"])},
    optional={"description": PROSE, "default": JSON, "enum": st.lists(JSON, min_size=1)},
)


def _any_of(schemas: Any) -> dict[str, Any]:
    return {"anyOf": schemas}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _larger(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(_any_of),
        inner.map(_array),
        st.dictionaries(PROSE, inner, max_size=3).map(_object),
    )


SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(LEAVES, _larger, max_leaves=6)


def _subset(words: Any) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from([str(word) for word in words]), unique=True, max_size=3)


# Fields of which each is fine; whether they are fine together is for the reader to say.
FIELDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "description": PROSE,
        "display_name": PROSE,
        "version": WORDS,
        "category": PROSE,
        "categories": st.lists(WORDS, unique=True, max_size=3),
        "tags": st.lists(PROSE, unique=True, max_size=3),
        "input_schema": st.dictionaries(PROSE, SCHEMAS, max_size=3).map(_object),
        "output_schema": SCHEMAS,
        "provider": st.sampled_from(["http", "python", "custom"]),
        "config": st.dictionaries(PROSE, JSON, max_size=3),
        "enabled": st.booleans(),
        "permissions": _subset(Permission),
        "side_effects": _subset(SideEffect),
        "effect": st.sampled_from(["pure", "idempotent", "irreversible"]),
        "destructive": st.booleans(),
        "requires_confirmation": st.booleans(),
        "requires_approval": st.booleans(),
        "allowed_callers": st.sampled_from([["direct"], ["chain"], ["direct", "chain"]]),
        "timeout": st.floats(0.001, 86_400),
        "output_limit": st.integers(1, 2**40),
        "rate_limit": st.sampled_from(["1/second", "60/minute", "5/hour", "7/day"]),
    },
)
