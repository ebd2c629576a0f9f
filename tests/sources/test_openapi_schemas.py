"""Parameters, bodies, schemas, servers and security: what an operation says is what a tool has."""

from typing import Any

import pytest

from tests.sources.openapi_documents import document, schema, taken, tools
from toolgate.sources.openapi.options import Options

pytestmark = pytest.mark.req("P2")


def one(version: str = "3.0.3", **operation: Any) -> dict[str, Any]:
    return document({"/a/{id}": {"post": {"operationId": "do", **operation}}}, version)


def sent(content: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"requestBody": {"required": required, "content": content}}


@pytest.mark.parametrize(
    ("version", "given", "becomes"),
    [
        ("3.0.3", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            "3.0.3",
            {"type": "string", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            "3.0.3",
            {"allOf": [{"type": "object"}], "nullable": True},
            {"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]},
        ),
        (
            "3.0.3",
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
        ),
        ("3.0.3", {"type": "integer", "example": 3}, {"type": "integer", "examples": [3]}),
        ("3.1.0", {"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ("3.1.0", {"const": 1, "examples": [1]}, {"const": 1, "examples": [1]}),
        ("3.0.3", {"type": "string", "pattern": "(?=a)b"}, {"type": "string"}),
        ("3.0.3", {"type": "weird", "x-more": 1, "discription": 2}, {}),
        ("3.0.3", {"type": "string", "minLength": "1", "maxLength": -1}, {"type": "string"}),
        ("3.0.3", {"type": "string", "required": True}, {"type": "string"}),
        ("3.0.3", {"type": "integer", "maximum": 2**70}, {"type": "integer", "maximum": 2.0**70}),
        (
            "3.0.3",
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"type": "string", "readOnly": True}, "b": {}},
            },
            {"type": "object", "required": ["b"], "properties": {"b": {}}},
        ),
    ],
)
def test_schemas_are_translated(
    version: str, given: dict[str, Any], becomes: dict[str, Any]
) -> None:
    query = {"name": "q", "in": "query", "schema": given}
    found = taken(one(version, parameters=[query]))
    assert schema(found, "do")["properties"]["q"] == becomes


def test_a_pattern_that_is_left_out_is_told() -> None:
    query = {"name": "q", "in": "query", "schema": {"type": "string", "pattern": "(a)\\1"}}
    (note,) = taken(one(parameters=[query])).notes
    assert "does not run in linear time" in note.message
    assert note.where == ["POST /a/{id}"]


def test_what_a_word_chooses_between_is_said_by_that_word() -> None:
    cat = {"type": "object", "properties": {"kind": {"type": "string"}}}
    pet = {
        "oneOf": [{"$ref": "#/components/schemas/Cat"}],
        "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat"}},
    }
    given = one(**sent({"application/json": {"schema": pet}}))
    found = taken(given | {"components": {"schemas": {"Cat": cat}}})
    (branch,) = schema(found, "do")["properties"]["body"]["oneOf"]
    assert branch == {
        "$ref": "#/$defs/Cat",
        "properties": {"kind": {"enum": ["cat"]}},
        "required": ["kind"],
    }


def test_names_that_clash_get_their_place_and_odd_ones_are_cleaned() -> None:
    parameters = [
        {"name": "id", "in": "query"},
        {"name": "id", "in": "header"},
        {"name": "filter[a b]", "in": "query", "style": "deepObject", "explode": True},
        {"name": "Authorization", "in": "header"},
        {"name": "Host", "in": "header"},
        {"name": "sid", "in": "cookie", "schema": {"type": "array"}, "explode": False},
    ]
    body = sent({"application/json": {"schema": {"properties": {"id": {"type": "integer"}}}}})
    found = taken(one(parameters=parameters, **body))
    config = tools(found)["do"]["config"]
    assert [(each["in"], each["argument"]) for each in config["parameters"]] == [
        ("path", "id"),
        ("query", "id_query"),
        ("query", "filter_a_b"),
        ("header", "id_header"),
        ("cookie", "sid"),
    ]
    assert config["parameters"][2] == {
        "name": "filter[a b]",
        "in": "query",
        "argument": "filter_a_b",
        "style": "deepObject",
        "explode": True,
    }
    assert config["body"] == {
        "kind": "json",
        "media_type": "application/json",
        "argument": "body",
    }
    assert schema(found, "do")["required"] == ["id", "body"]
    assert any("'Host'" in note.message for note in found.notes)


@pytest.mark.parametrize(
    ("content", "body"),
    [
        (
            {"application/json": {"schema": {"properties": {"a": {}}, "required": ["a"]}}},
            {"kind": "json", "media_type": "application/json", "arguments": ["a"]},
        ),
        (
            {"application/xml": {}, "application/vnd.x+json": {"schema": {"type": "array"}}},
            {"kind": "json", "media_type": "application/vnd.x+json", "argument": "body"},
        ),
        (
            {
                "application/x-www-form-urlencoded": {
                    "schema": {"properties": {"a": {"type": "array"}}},
                    "encoding": {"a": {"style": "deepObject", "explode": True}},
                }
            },
            {
                "kind": "form",
                "media_type": "application/x-www-form-urlencoded",
                "encoding": {"a": {"style": "deepObject", "explode": True}},
                "arguments": ["a"],
            },
        ),
        (
            {
                "multipart/form-data": {
                    "schema": {"properties": {"f": {"type": "string", "format": "binary"}}}
                }
            },
            {
                "kind": "multipart",
                "media_type": "multipart/form-data",
                "arguments": ["f"],
                "files": ["f"],
            },
        ),
        (
            {"text/plain": {"schema": {"type": "string"}}},
            {"kind": "text", "media_type": "text/plain", "argument": "body"},
        ),
        (
            {"image/png": {}},
            {"kind": "binary", "media_type": "image/png", "argument": "body"},
        ),
    ],
)
def test_bodies_are_sent_as_what_they_are(content: dict[str, Any], body: dict[str, Any]) -> None:
    assert tools(taken(one(**sent(content))))["do"]["config"]["body"] == body


def test_2_0_says_the_same_in_other_words() -> None:
    found = taken(
        {
            "swagger": "2.0",
            "info": {"title": "Old", "version": "1"},
            "host": "api.example.com",
            "basePath": "/v2",
            "schemes": ["http", "https"],
            "consumes": ["application/json"],
            "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
            "security": [{"key": []}],
            "paths": {
                "/a": {
                    "parameters": [
                        {"name": "ids", "in": "query", "type": "array", "collectionFormat": "pipes"}
                    ],
                    "post": {
                        "operationId": "add",
                        "parameters": [
                            {"name": "x", "in": "body", "schema": {"$ref": "#/definitions/X"}}
                        ],
                        "responses": {"200": {"schema": {"$ref": "#/definitions/X"}}},
                    },
                    "put": {
                        "operationId": "upload",
                        "parameters": [
                            {"name": "file", "in": "formData", "type": "file", "required": True}
                        ],
                    },
                }
            },
            "definitions": {"X": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        }
    )
    add, upload = tools(found)["add"], tools(found)["upload"]
    assert add["config"]["url"] == "https://api.example.com/v2"
    assert add["config"]["parameters"][0]["style"] == "pipeDelimited"
    assert add["config"]["body"]["arguments"] == ["n"]
    assert add["output_schema"] == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert add["config"]["auth"] == {
        "kind": "api_key",
        "in": "header",
        "name": "X-Key",
        "secret": "old_key",
    }
    assert [(secret.name, secret.hosts) for secret in found.secrets] == [
        ("old_key", ["api.example.com"])
    ]
    assert upload["config"]["body"]["files"] == ["file"]
    assert upload["input_schema"]["required"] == ["file"]


@pytest.mark.parametrize(
    ("servers", "options", "url"),
    [
        ([{"url": "https://a.example/v1/"}], Options(), "https://a.example/v1"),
        ([{"url": "/v3"}], Options(address="https://h.example/x/doc.json"), "https://h.example/v3"),
        (
            [{"url": "https://{r}.example/", "variables": {"r": {"default": "eu"}}}],
            Options(),
            "https://eu.example",
        ),
        ([{"url": "/v3"}], Options(server="http://127.0.0.1:1/x"), "http://127.0.0.1:1/x"),
        ([{"url": "ftp://a"}, {"url": "https://b.example"}], Options(), "https://b.example"),
        ([{"url": "/v3"}], Options(), None),
        ([{"url": "https://user:pw@a.example"}], Options(), None),
        ([{"url": "https://a.example/?x=1"}], Options(), None),
        ([{"url": "file:///etc/passwd"}], Options(), None),
        ([{"url": "https://{r}.example"}], Options(), None),
    ],
)
def test_servers_are_whole_addresses(
    servers: list[dict[str, Any]], options: Options, url: str | None
) -> None:
    found = taken(one() | {"servers": servers}, options)
    assert [tool["config"]["url"] for tool in found.tools] == ([url] if url else [])
    assert bool(found.skipped) == (url is None)


@pytest.mark.parametrize(
    ("scheme", "options", "auth"),
    [
        ({"type": "http", "scheme": "Bearer"}, {}, {"kind": "bearer"}),
        (
            {"type": "http", "scheme": "basic"},
            {},
            {"kind": "api_key", "in": "header", "name": "Authorization", "prefix": "Basic "},
        ),
        (
            {"type": "apiKey", "in": "cookie", "name": "sid"},
            {},
            {"kind": "api_key", "in": "cookie", "name": "sid"},
        ),
        (
            {
                "type": "oauth2",
                "flows": {"clientCredentials": {"tokenUrl": "https://id.example/token"}},
            },
            {"client_id": "me"},
            {"kind": "oauth", "token_url": "https://id.example/token", "client_id": "me"},
        ),
        ({"type": "oauth2", "flows": {"implicit": {}}}, {}, {"kind": "bearer"}),
        ({"type": "mutualTLS"}, {}, None),
    ],
)
def test_security_becomes_the_name_of_a_secret(
    scheme: dict[str, Any], options: dict[str, Any], auth: dict[str, Any] | None
) -> None:
    given = one(security=[{"s": []}]) | {"components": {"securitySchemes": {"s": scheme}}}
    found = taken(given, Options(**options))
    (tool,) = found.tools
    assert tool["config"].get("auth") == (auth and auth | {"secret": "small_s"})
    assert len(found.secrets) == (auth is not None)
    assert len(found.notes) == (auth is None)


def test_words_are_tidy_and_hide_nothing() -> None:
    about = "<p>Adds\u200b a\u202e pet.</p>\n\n<script>x</script> &amp; more \x1b" + " y" * 5_000
    (tool,) = taken(one(summary="Put in", description=about)).tools
    text = tool["description"]
    assert text.startswith("Put in. Adds a pet. <script>x</script> & more")
    assert len(text) < 1_100


def test_examples_beside_a_schema_are_shown_with_the_argument() -> None:
    text = {"type": "string", "example": "of the schema"}
    given = one(
        parameters=[
            {"name": "id", "in": "path", "required": True, "schema": text, "example": "a-1"},
            {
                "name": "sort",
                "in": "query",
                "schema": text,
                "examples": {
                    "up": {"value": "asc"},
                    "down": {"$ref": "#/components/examples/Down"},
                    "gone": {"$ref": "#/components/examples/Nowhere"},
                    "away": {"externalValue": "https://example.com/x"},
                },
            },
            {
                "name": "where",
                "in": "query",
                "content": {
                    "application/json": {"schema": {"type": "object"}, "example": {"a": 1}}
                },
            },
            {"name": "plain", "in": "query", "schema": text},
        ],
        **sent(
            {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "tags": {"type": "array"}},
                        "additionalProperties": False,
                    },
                    "examples": {"one": {"value": {"name": "Rex", "tags": ["x"]}}, "odd": 3},
                }
            }
        ),
    )
    given["components"] = {"examples": {"Down": {"value": "desc"}}}
    found = schema(taken(given), "do")["properties"]
    assert {name: field.get("examples") for name, field in found.items()} == {
        "id": ["a-1"],
        "sort": ["asc", "desc"],
        "where": [{"a": 1}],
        "plain": ["of the schema"],
        "name": ["Rex"],
        "tags": [["x"]],
    }


def test_a_whole_body_shows_its_examples_and_many_or_long_ones_are_left_out() -> None:
    long = {str(number): "x" * 100 for number in range(9)}
    many = {str(number): {"value": {"n": number}} for number in range(1_000)}
    content = {"schema": {"type": "object"}, "example": long, "examples": many}
    found = schema(taken(one(**sent({"application/json": content}))), "do")["properties"]
    assert found["body"]["examples"] == [{"n": 0}, {"n": 1}, {"n": 2}]
