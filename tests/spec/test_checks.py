"""Contradictions are refused at load; what is consistent is not."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.spec.specs import problems, sentences, spec
from toolgate.spec.effect import Effect
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin

INVOICE = {"type": "object", "properties": {"invoice": {"type": "string"}}}


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"effect": "pure", "destructive": True}, "effect is pure, but the tool is destructive"),
        ({"effect": "pure", "side_effects": ["modifies_files"]}, "lists modifies_files"),
        ({"effect": "pure", "side_effects": ["system_state"]}, "lists system_state"),
        ({"effect": "compensatable"}, "compensation is missing"),
        ({"effect": "pure", "compensation": "undo"}, "compensation is given, but effect is pure"),
        ({"effect": "compensatable", "compensation": "pay"}, "names the tool itself"),
        (
            {"effect": "idempotent", "side_effects": ["read_only", "modifies_files"]},
            "lists read_only together with modifies_files",
        ),
        ({"side_effects": ["read_only"], "destructive": True}, "destructive is true, but"),
        (
            {"effect": "irreversible", "side_effects": ["read_only"]},
            "effect is irreversible, but side_effects",
        ),
        ({"retry": 3}, "but effect is not given, which means irreversible: a second attempt"),
        ({"retry": 3, "effect": "irreversible"}, "but effect is irreversible: a second attempt"),
        ({"compensation": "undo"}, "but effect is not given, which means irreversible."),
        (
            {"side_effects": ["read_only"], "compensation": "undo"},
            "but effect is not given, which means pure.",
        ),
        (
            {"side_effects": ["read_only", "network_access"]},
            "effect is not given, which means irreversible, but side_effects lists read_only",
        ),
        ({"effect": "pure", "downstream_key": "key"}, "there is nothing to be done once"),
        ({"effect": "idempotent", "probe": "find"}, "it would simply be run again"),
        ({"probe": "pay"}, "probe names the tool itself"),
        ({"probe": {"tool": "find", "happened": ""}}, "says nowhere in its result"),
        ({"probe": {"tool": "find", "args": {"a": "$result.b"}}}, "which refers to nothing"),
        ({"probe": {"tool": "find", "args": {"a": "$key.b"}}}, "which refers to nothing"),
        (
            {"probe": {"tool": "find", "args": {"a": "$args.b"}}, "input_schema": INVOICE},
            "refers to the argument 'b', which input_schema lacks",
        ),
        (
            {"effect": "compensatable", "compensation": {"tool": "a", "window": 0}},
            "compensation.window is 0; it goes from",
        ),
        ({"confirmation_prompt": "Sure?"}, "nobody would be asked"),
        ({"allowed_callers": []}, "nobody could call it"),
        ({"idempotency_key": ["other"], "input_schema": INVOICE}, "names 'other'"),
        (
            {"effect": "compensatable", "compensation": {"tool": "a", "args": {"x": "$arg.y"}}},
            "holds '$arg.y', which refers to nothing",
        ),
        (
            {"effect": "compensatable", "compensation": {"tool": "a", "args": {"x": ["$args.y"]}}},
            "refers to the argument 'y', which input_schema lacks",
        ),
    ],
)
def test_a_contradiction_is_refused(fields: dict[str, Any], said: str) -> None:
    found = sentences(**fields)
    assert any(said in sentence for sentence in found), found


CONSISTENT: list[dict[str, Any]] = [
    {"effect": "pure", "side_effects": ["read_only"]},
    {"effect": "pure", "side_effects": ["network_access", "calls_llm"]},
    {"effect": "idempotent", "retry": 3, "destructive": True},
    {"retry": 1},
    {"retry": 3, "downstream_key": {"header": "Idempotency-Key"}},
    {"effect": "idempotent", "downstream_key": "key"},
    {"effect": "compensatable", "compensation": {"tool": "a", "window": None}},
    {
        "probe": {"tool": "find", "args": {"a": "$key", "b": "$args.invoice"}},
        "input_schema": INVOICE,
    },
    {"requires_confirmation": True, "confirmation_prompt": "Sure?"},
    {"requires_approval": True, "confirmation_prompt": "Sure?"},
    {"destructive": True, "confirmation_prompt": "Sure?"},
    {"idempotency_key": ["invoice"], "input_schema": INVOICE},
    {
        "effect": "compensatable",
        "input_schema": INVOICE,
        "compensation": {"tool": "a", "args": {"x": "$args.invoice", "y": "$result.a.b"}},
    },
    {
        "idempotency_key": ["a"],
        "input_schema": {"type": "object", "anyOf": [{"properties": {"a": {}}}]},
    },
]


@pytest.mark.req("C1")
@pytest.mark.parametrize("fields", CONSISTENT)
def test_what_is_consistent_is_taken(fields: dict[str, Any]) -> None:
    assert spec(**fields).name == "pay"


@pytest.mark.req("C1")
def test_the_message_names_file_line_tool_and_field() -> None:
    text = "tools:\n  - name: wipe\n    provider: http\n    destructive: true\n    effect: pure\n"
    (problem,) = problems(text, "tools/disk.yaml")
    assert str(problem) == snapshot(
        "tools/disk.yaml:5: wipe.effect is pure, but the tool is destructive. "
        "Write effect: irreversible, or destructive: false."
    )


@pytest.mark.req("C1")
def test_a_field_that_could_not_be_read_contradicts_nothing() -> None:
    assert len(sentences(effect="sure", destructive=True, retry=3)) == 1
    assert len(sentences(destructive="yes", confirmation_prompt="Sure?")) == 1


@pytest.mark.req("C1")
def test_a_schema_of_many_arguments_does_not_fill_the_message() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {f"argument_{at}": {} for at in range(5000)},
    }
    (said,) = sentences(idempotency_key=["x"], input_schema=schema)
    assert "and 4,990 more" in said
    assert len(said) < 500


@pytest.mark.req("C1")
def test_a_tool_that_only_says_read_only_is_pure_and_one_that_says_nothing_is_irreversible() -> (
    None
):
    here = Origin("file", "here")
    reads = read_tool({"name": "look", "side_effects": ["read_only"]}, origin=here)
    assert reads.effect is Effect.PURE
    more = {"name": "look", "side_effects": ["network_access"]}
    assert read_tool(more, origin=here).effect is Effect.IRREVERSIBLE
    assert read_tool({"name": "look"}, origin=here).effect is Effect.IRREVERSIBLE
