"""Real OpenAPI documents become tools, and all of what they say is there or told."""

from typing import Any

import pytest

from tests.sources.openapi_documents import ADDRESS, document, real, schema, taken, tools
from toolgate.errors import InvalidSpecs
from toolgate.providers.http.config import plan
from toolgate.providers.http.oauth import Tokens
from toolgate.providers.http.secret import Secrets
from toolgate.settings.outward import Secret
from toolgate.sources.openapi.opened import open_document
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.report import Imported
from toolgate.sources.openapi.selection import Selection
from toolgate.spec.reader import read_tools
from toolgate.spec.tool import Origin

pytestmark = pytest.mark.req("C2", "P2")
# What the report says to write where a secret would go in clear text.
SAFE = {
    "sendgrid-trap-control-char": "https://api.sendgrid.com/v3",
    "petstore-3.1": "https://petstore.swagger.io/v2",
}
GET: dict[str, Any] = {"get": {"operationId": "see", "responses": {}}}


def check_usable(found: Imported) -> None:
    """The HTTP provider takes every one of them, once their secrets are set."""
    specs = read_tools(
        list(found.tools), file="x", origin=Origin("openapi", "x"), line_of=lambda _: None
    )
    given = {one.name: Secret(value_env=one.name, hosts=tuple(one.hosts)) for one in found.secrets}
    secrets = Secrets(given, dict.fromkeys(given, "value-of-a-secret"))
    unused: Any = None
    for spec in specs:
        plan(spec, secrets, Tokens(unused, seconds=1), most=1_000)


@pytest.mark.parametrize(
    ("name", "operations", "made"),
    [
        ("1forge-2.0", 2, 2),
        # TRACE is never a tool.
        ("httpbin-3.0", 78, 73),
        ("kubernetes-1.10-2.0", 945, 945),
        # 15 are deprecated, and so is one of Petstore and 4 of Stripe.
        ("openai-3.1", 288, 273),
        ("petstore-3.0", 19, 19),
        ("petstore-3.1", 20, 19),
        ("sendgrid-trap-control-char", 334, 334),
        ("slack-3.0", 174, 174),
        ("stripe-3.0", 452, 448),
        ("xkcd-3.0", 2, 2),
    ],
)
def test_a_real_document_is_taken_and_all_it_has_is_a_tool_or_told(
    name: str, operations: int, made: int
) -> None:
    found = taken(real(name), Options(address=ADDRESS, server=SAFE.get(name, "")))
    assert (found.operations, len(found.tools)) == (operations, made)
    left = [one for one in found.skipped if not one.operation.startswith("webhook")]
    assert len(left) == operations - made
    assert all(one.reason for one in found.skipped)
    check_usable(found)


def test_a_stray_control_character_is_replaced_and_its_line_told() -> None:
    found = taken(real("sendgrid-trap-control-char"))
    (note,) = [one for one in found.notes if "control character" in one.message]
    assert "line 13002" in note.where


def test_the_same_document_gives_the_same_tools() -> None:
    assert taken(real("slack-3.0")) == taken(real("slack-3.0"))


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("openapi: 3.0.0\npaths: {a: [1}\n", 2, "is not YAML"),
        ('{"openapi": "3.0.0",\n "openapi": "3.0.0"}', 2, "twice"),
        ("openapi: 3.0.0\ninfo: *missing\n", 2, "alias"),
        ("openapi: 4.0.0\n", 1, "is openapi '4.0.0'"),
        ("swagger: '1.2'\n", 1, "is swagger '1.2'"),
        ("title: no\n", 1, "says nowhere"),
        ("[]", 1, "is no OpenAPI document"),
        ("openapi: 3.0.0\ninfo: {}\npaths: 7\n", 3, "has paths that are no object"),
        ("openapi: 3.0.0\ninfo: \x01\n", 2, "is not YAML"),
    ],
)
def test_a_document_that_cannot_be_read_is_told_with_line_and_cause(
    text: str, line: int, cause: str
) -> None:
    with pytest.raises(InvalidSpecs) as refused:
        open_document(text.encode(), file="api.yaml")
    assert f"api.yaml:{line}: " in str(refused.value)
    assert cause in str(refused.value)


@pytest.mark.parametrize(
    "text", ["x: =\n", "x: a\t\n", "\t\nx: |\n  a\n\t\n  b\n", "x:\n  -\ta\n", "x: no\n"]
)
def test_what_yaml_allows_and_parsers_stumble_over_is_read(text: str) -> None:
    assert open_document(f"openapi: 3.0.0\n{text}".encode(), file="a.yaml").version == "3.0"


def test_names_come_from_ids_else_from_method_and_path_and_are_unique() -> None:
    same: dict[str, Any] = {"operationId": "list pets!", "responses": {}}
    found = taken(
        document(
            {
                "/pets": {"get": same, "post": same},
                "/a/{id}": {"get": {}, "delete": {"operationId": "9lives"}},
                "/long": {"get": {"operationId": "x" * 300}},
                "/odd": {"get": {"operationId": "\x1b[31m\u202e"}},
            }
        )
    )
    names = list(tools(found))
    assert names[:5] == ["list_pets", "list_pets_2", "get_a_id", "_9lives", names[4]]
    assert len(names[4]) == 128
    assert names[5] == "_31m"


def test_a_prefix_stands_before_each_name() -> None:
    found = taken(document({"/a": GET}), Options(prefix="shop_"))
    assert list(tools(found)) == ["shop_see"]


@pytest.mark.parametrize(
    ("method", "care_taken"),
    [
        ("get", {"effect": "pure"}),
        ("head", {"effect": "pure"}),
        ("options", {"effect": "pure"}),
        ("put", {"effect": "idempotent"}),
        ("delete", {"effect": "idempotent", "destructive": True}),
        ("post", {"effect": "irreversible"}),
        ("patch", {"effect": "irreversible"}),
    ],
)
def test_the_method_says_how_careful_to_be(method: str, care_taken: dict[str, Any]) -> None:
    (tool,) = taken(document({"/a": {method: {}}})).tools
    assert {key: tool.get(key) for key in ("effect", "destructive") if key in tool} == care_taken


def test_the_operators_document_may_lower_the_care_a_fetched_one_may_not() -> None:
    paths = {
        "/a": {
            "post": {"operationId": "find", "x-toolgate": {"effect": "pure", "provider": "python"}},
            "get": {"operationId": "see", "x-toolgate": {"requires_approval": True}},
        }
    }
    local = taken(document(paths), Options())
    assert [len(one.where) for one in local.notes if "less care" in one.message] == [1]
    own = tools(local)
    assert (own["find"]["effect"], own["find"]["provider"]) == ("pure", "http")
    found = taken(document(paths))
    assert tools(found)["find"]["effect"] == "irreversible"
    assert tools(found)["see"]["requires_approval"] is True
    assert any("less care" in one.message for one in found.notes)


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(tags=["pet"], methods=["DELETE"]), ["deletePet"]),
        (Selection(paths=["/store/order/*"], methods=["get"]), ["getOrderById"]),
        (Selection(operations=["createUsers*"]), ["createUsersWithListInput"]),
        (Selection(tags=["nothing"]), []),
    ],
)
def test_operations_are_chosen_by_tag_path_method_and_id(
    selection: Selection, names: list[str]
) -> None:
    found = taken(real("petstore-3.0"), Options(selection=selection, server="https://x.example"))
    assert list(tools(found)) == names
    assert len(found.skipped) == 19 - len(names)


def test_what_is_deprecated_comes_only_when_asked_for() -> None:
    paths = {"/a": {"get": {"operationId": "old", "deprecated": True}}}
    assert not taken(document(paths)).tools
    (tool,) = taken(document(paths), Options(selection=Selection(deprecated=True))).tools
    assert tool["description"].startswith("Deprecated.")


def test_cycles_of_references_stay_references_and_only_what_is_reached_is_kept() -> None:
    schemas = {
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
        "Other": {"type": "string"},
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    found = taken(
        document(
            {"/a": {"post": {"operationId": "add", "requestBody": body}}},
            components={"schemas": schemas},
        )
    )
    assert schema(found, "add") == {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}},
        "additionalProperties": False,
        "$defs": {"Node": schemas["Node"] | {"properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
