"""What planners see: a name, a description, a schema, and nothing that only a provider needs."""

import json
from typing import Any

import pytest
from hypothesis import given
from inline_snapshot import snapshot
from msgspec import structs

from tests.spec.specs import FIELDS, rich, spec
from tests.spec.test_fingerprint import loaded
from toolgate.spec.export import EACH, FORMATS, export
from toolgate.spec.names import for_model

SECRET = "s3cret-8c1f"  # noqa: S105


@pytest.mark.req("C3")
def test_openai_tools() -> None:
    assert export([rich()], "openai") == snapshot(
        [
            {
                "type": "function",
                "function": {
                    "name": "billing_pay_invoice_bec4ad21",
                    "description": "Pay an open invoice.",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "invoice_id": {"type": "string", "description": "Which invoice."},
                            "amount": {"type": "number", "default": 0},
                            "note": True,
                        },
                        "required": ["invoice_id"],
                    },
                },
            }
        ]
    )


@pytest.mark.req("C3")
def test_anthropic_tools() -> None:
    assert export([rich()], "anthropic") == snapshot(
        [
            {
                "name": "billing_pay_invoice_bec4ad21",
                "description": "Pay an open invoice.",
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "invoice_id": {"type": "string", "description": "Which invoice."},
                        "amount": {"type": "number", "default": 0},
                        "note": True,
                    },
                    "required": ["invoice_id"],
                },
            }
        ]
    )


@pytest.mark.req("C3")
def test_mcp_tools() -> None:
    assert export([structs.replace(rich(), provider="mcp")], "mcp") == snapshot(
        [
            {
                "name": "billing_pay_invoice_bec4ad21",
                "title": "Pay invoice",
                "description": "Pay an open invoice.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "invoice_id": {"type": "string", "description": "Which invoice."},
                        "amount": {"type": "number", "default": 0},
                        "note": True,
                    },
                    "required": ["invoice_id"],
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {"payment_id": {"type": "string"}},
                },
                "annotations": {
                    "readOnlyHint": False,
                    "destructiveHint": False,
                    "idempotentHint": False,
                },
            }
        ]
    )


@pytest.mark.req("C3")
def test_the_tool_section_of_a_prompt() -> None:
    assert export([rich(), spec(name="ping")], "prompt") == snapshot("""\
### billing:pay/invoice
Pay an open invoice.
- invoice_id (string, required): Which invoice.
- amount (number, optional)
- note (any, optional)

### ping\
""")


@pytest.mark.req("C3")
def test_toolgates_own_format() -> None:
    (shown,) = export([rich()])
    assert shown.pop("fingerprint") == rich().fingerprint
    assert shown == snapshot(
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
            "permissions": ["network"],
            "side_effects": ["network_access", "system_state"],
            "effect": "compensatable",
            "destructive": False,
            "compensation": {
                "tool": "refund",
                "args": {"payment": "$result.payment_id"},
                "window": 3600.0,
            },
            "requires_confirmation": True,
            "confirmation_prompt": "Really pay?",
            "requires_approval": True,
            "allowed_callers": ["direct", "chain"],
            "idempotency_key": ["invoice_id"],
            "downstream_key": {"argument": "", "header": "Idempotency-Key"},
            "probe": {
                "tool": "find_payment",
                "args": {"invoice": "$args.invoice_id", "reference": "$key"},
                "happened": "found",
                "result": "payment",
            },
            "timeout": 30.0,
            "retry": {"attempts": 1, "base_delay": 0.2, "max_delay": 10.0},
            "output_limit": 1000,
            "rate_limit": {"calls": 60, "per": 60.0},
            "costs": [
                {"metric": "money", "amount": "$result.amount"},
                {"metric": "invoices", "amount": 1},
            ],
            "execution": "inline",
        }
    )


@pytest.mark.req("C3")
@pytest.mark.parametrize(
    ("fields", "hints"),
    [
        ({"effect": "pure"}, (True, False, True)),
        ({"effect": "idempotent"}, (False, False, True)),
        ({"effect": "idempotent", "destructive": True}, (False, True, True)),
        ({"effect": "irreversible"}, (False, True, False)),
        ({"effect": "compensatable", "compensation": "undo"}, (False, False, False)),
    ],
)
def test_the_hints_of_mcp_follow_from_the_effect(
    fields: dict[str, Any], hints: tuple[bool, bool, bool]
) -> None:
    (tool,) = export([spec(**fields)], "mcp")
    assert tuple(tool["annotations"].values()) == hints


@pytest.mark.req("C3")
def test_an_output_that_is_no_object_is_left_out_of_mcp() -> None:
    (tool,) = export([spec(output_schema={"type": "string"})], "mcp")
    assert "outputSchema" not in tool


@pytest.mark.req("C3")
def test_what_nobody_holds_a_service_to_is_no_promise_to_a_client() -> None:
    schema = {"type": "object"}
    both = [spec(provider=provider, output_schema=schema) for provider in ("http", "mcp")]
    assert ["outputSchema" in tool for tool in export(both, "mcp")] == [False, True]


@pytest.mark.req("C3")
@pytest.mark.parametrize("format_", FORMATS)
def test_config_and_secrets_are_in_no_export(format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = spec(config={"url": "https://example.com", "headers": {"X-Key": SECRET}})
    assert SECRET in tool.config.raw.decode(), "positive control"
    written = json.dumps(export([tool], format_))
    assert SECRET not in written
    assert "example.com" not in written
    assert "tools.yaml" not in written
    if format_ == "toolgate":
        # Without leaving fields out, it would be there.
        def everything(one: Any, *, but: tuple[str, ...] = ()) -> dict[str, object]:
            return {"config": one.config.value()}

        monkeypatch.setattr("toolgate.spec.export.definition", everything)
        assert SECRET in json.dumps(export([tool], format_))


@pytest.mark.req("C3")
@given(fields=FIELDS)
def test_whatever_loads_can_be_exported_in_every_format(fields: dict[str, Any]) -> None:
    tool = loaded(fields | {"config": {"key": SECRET}})
    for format_ in FORMATS:
        assert SECRET not in json.dumps(export([tool], format_))
    assert export([tool], "anthropic")[0]["name"] == for_model(tool.name)


@pytest.mark.req("C3")
def test_an_export_can_be_changed_without_changing_the_spec() -> None:
    tool = rich()
    for one in EACH.values():
        shown = one(tool)
        shown.clear()
    export([tool], "openai")[0]["function"]["parameters"]["properties"].clear()
    assert "invoice_id" in tool.input_schema.value()["properties"]


@pytest.mark.req("C3")
def test_a_format_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="openai, anthropic, mcp, toolgate, responses, prompt"):
        export([], "gemini")
