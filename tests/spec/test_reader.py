"""A tool file is read whole, or refused with everything that is wrong with it."""

import pytest
from inline_snapshot import snapshot

from tests.spec.specs import problems, read, sentences, spec
from toolgate.sources.text import parse
from toolgate.spec.document import Document
from toolgate.spec.effect import CallerKind, Effect, Permission, SideEffect
from toolgate.spec.fields import FIELDS
from toolgate.spec.reader import MAX_PROBLEMS, read_tool
from toolgate.spec.tool import Compensation, Origin, RateLimit, Retry, ToolSpec

NATIVE = """
tools:
  - name: pay_invoice
    description: Pay an open invoice.
    provider: python
    config: {module: billing, function: pay}
    input_schema: {type: object, properties: {invoice_id: {type: string}}, required: [invoice_id]}
    effect: compensatable
    side_effects: [network_access]
    requires_approval: false
    idempotency_key: [invoice_id]
    compensation: {tool: refund, args: {payment: "$result.payment_id", reason: "undo"}}
    timeout: 30
    retry: {attempts: 1, base_delay: 1}
    rate_limit: 60/minute
    output_limit: 1000
    permissions: [network]
    category: finance
    allowed_callers: [direct, chain]
"""


@pytest.mark.req("C1")
def test_every_field_of_the_native_layout_is_read() -> None:
    (found,) = read(NATIVE)
    assert found.effect is Effect.COMPENSATABLE
    assert found.side_effects == (SideEffect.NETWORK_ACCESS,)
    assert found.permissions == (Permission.NETWORK,)
    assert found.allowed_callers == (CallerKind.DIRECT, CallerKind.CHAIN)
    assert found.config.value() == {"module": "billing", "function": "pay"}
    assert found.compensation == Compensation(
        tool="refund", args=Document.of({"payment": "$result.payment_id", "reason": "undo"})
    )
    assert found.timeout == 30
    assert found.retry == Retry(attempts=1, base_delay=1)
    assert found.rate_limit == RateLimit(calls=60, per=60)
    assert found.idempotency_key == ("invoice_id",)
    assert found.input_schema.is_valid({"invoice_id": "7"})
    assert not found.input_schema.is_valid({})


@pytest.mark.req("C1")
def test_every_field_of_a_spec_but_its_origin_can_be_written_in_a_file() -> None:
    assert FIELDS.keys() == set(ToolSpec.__struct_fields__) - {"origin"}


@pytest.mark.req("C1")
def test_the_example_of_every_field_can_be_read() -> None:
    for name, field in FIELDS.items():
        field.read(parse(field.example.encode(), file="example").value[name])


@pytest.mark.req("C1")
def test_a_spec_that_says_nothing_is_irreversible_and_takes_no_arguments() -> None:
    found = spec()
    assert found.effect is Effect.IRREVERSIBLE
    assert found.input_schema.is_valid({})
    assert not found.input_schema.is_valid({"a": 1})


@pytest.mark.req("C1")
def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        spec().name = "other"  # pyright: ignore[reportAttributeAccessIssue]
    found = spec(config={"a": [1]})
    found.config.value()["a"].append(2)
    assert found.config.value() == {"a": [1]}


@pytest.mark.req("C2")
def test_a_spec_remembers_its_source() -> None:
    origin = Origin("file", "a.yaml")
    assert read_tool({"name": "a", "provider": "http"}, origin=origin).origin == origin


@pytest.mark.req("C1")
def test_all_problems_are_told_at_once_with_file_line_tool_and_field() -> None:
    text = """
tools:
  - name: pay
    descripton: Pay.
    timeout: soon
    retry: {attempts: 0}
  - description: No name.
  - name: pay two
  - 7
more: 1
"""
    assert [str(problem) for problem in problems(text)] == snapshot(
        [
            "tools.yaml:10: 'more' is no key of a tool file. A tool file has one key: tools.",
            "tools.yaml:4: pay.descripton is not a known field. Did you mean description?",
            "tools.yaml:5: pay.timeout is a text, not a number. Write for example timeout: 30.",
            (
                "tools.yaml:6: pay.retry.attempts is 0; it goes from 1 to 20. "
                "Write for example retry: {attempts: 3, base_delay: 0.2}."
            ),
            "tools.yaml:7: entry 2.name is missing. Write name: pay_invoice.",
            (
                "tools.yaml:8: pay two.name is 'pay two', which is not a name of 1 to 128 "
                "characters: letters, digits and _ . : / -, starting with a letter or _. "
                "Write for example name: pay_invoice."
            ),
            "tools.yaml:9: entry 4 is a number, not a tool. Write - name: NAME and its fields.",
        ]
    )


@pytest.mark.req("C1")
def test_a_json_file_names_the_same_lines() -> None:
    text = """{
  "tools": [
    {"name": "a", "provider": "http"},
    {
      "name": "b",
      "timeout": "soon",
      "config": {
        "x": 1
      },
      "effect": "sure"
    }
  ],
  "more": 1
}"""
    assert [(p.tool, p.field, p.line) for p in problems(text, "tools.json")] == [
        ("", "", 13),
        ("b", "timeout", 6),
        ("b", "effect", 10),
    ]


@pytest.mark.req("C1")
def test_a_name_that_is_defined_twice_is_told_with_both_places() -> None:
    (problem,) = problems("- {name: a, provider: http}\n- {name: a, provider: http}\n")
    assert str(problem) == snapshot(
        "tools.yaml:2: a is defined twice, as entries 1 and 2. Rename or remove one."
    )


@pytest.mark.req("C1")
def test_a_list_of_problems_has_an_end() -> None:
    text = "[" + ",".join('{"nam": 1}' for _ in range(1000)) + "]"
    assert len(problems(text, "tools.json")) == MAX_PROBLEMS


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    "name", ["p\u0430y", "pay\u200b", "\uff50ay", "pay invoice", "1pay", "", "a" * 129]
)
def test_a_name_that_only_looks_like_one_is_refused(name: str) -> None:
    assert any("name is" in said for said in sentences(name=name))


@pytest.mark.req("C1")
def test_a_name_from_a_file_cannot_steer_a_terminal() -> None:
    (said,) = sentences(name="\x1b[31mred\n\u202e")
    assert said == snapshot(
        "file tools.yaml: \\x1b[31mred\\n\\u202e.name holds a control character. "
        "Write for example name: pay_invoice."
    )


@pytest.mark.req("C1")
@pytest.mark.parametrize("hidden", ["\x1b", "\x00", "\x9b", "\u202e", "\u2066", "\ud800"])
def test_a_text_with_characters_that_steer_instead_of_say_is_refused(hidden: str) -> None:
    assert any("control character" in said for said in sentences(description=f"a{hidden}b"))


@pytest.mark.req("C1")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"timeout": 10**400}, "goes from 0.001 to 86,400"),
        ({"timeout": True}, "is true or false, not a number"),
        ({"output_limit": 1.5}, "not a whole number"),
        ({"retry": {"attempts": 2, "tries": 1}}, "unknown key 'tries'"),
        ({"rate_limit": "many/minute"}, "which is no rate"),
        ({"rate_limit": "\u0663/minute"}, "which is no rate"),
        ({"rate_limit": {"calls": 1}}, "needs both calls and per"),
        ({"compensation": {"args": {}}}, "names no tool"),
        ({"effect": ["x"] * 50_000}, "is a list, not one of pure"),
        ({"tags": ["a", "a"]}, "lists an entry twice"),
        ({"tags": [str(at) for at in range(257)]}, "at most 256"),
        ({"version": [1]}, "is a list, not a text"),
        ({"config": {"a": float("nan")}}, "holds nan"),
        ({"config": {1: "a"}}, "has the key 1"),
        ({"config": {"a": object()}}, "holds a object"),
        ({"config": {"a": 2**70}}, "is not JSON"),
        ({"config": {"a": "x" * 600_000}}, "at most 524,288"),
        ({"input_schema": {"type": "string"}}, "must describe an object"),
        ({"metadata": {1: 2}}, "metadata.1 is not a known field"),
    ],
)
def test_what_is_wrong_with_a_field_is_said(fields: dict[str, object], said: str) -> None:
    found = sentences(**fields)
    assert any(said in sentence for sentence in found), found
    assert max(map(len, found)) < 500


@pytest.mark.req("C1")
def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert "nested deeper" in sentences(config={"a": loop})[0]


@pytest.mark.req("C1")
def test_a_value_that_is_small_in_memory_and_large_in_writing_is_refused() -> None:
    wide: object = ["x"] * 10_000
    for _ in range(4):
        wide = [wide] * 10_000
    assert "has more than 20,000 values" in sentences(config={"a": wide})[0]
