"""An operator's word on a document's tools: what it sets, what it takes away, how it is wrong."""

from typing import Any

import pytest

from tests.sources.openapi_documents import document, schema, taken, tools
from toolgate.errors import InvalidSpecs
from toolgate.sources.openapi.overlay import Overlay, read
from toolgate.sources.openapi.report import Imported

pytestmark = pytest.mark.req("P2")


def overlay(text: str) -> Overlay:
    return read(text.encode(), file="mine.yaml")


def parameter(name: str, place: str, *, required: bool = True) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": {"type": "string"}}


FORM = {
    "application/x-www-form-urlencoded": {
        "schema": {
            "type": "object",
            "properties": {"token": {"type": "string"}, "text": {"type": "string"}},
            "required": ["token"],
        }
    }
}
PATHS: dict[str, Any] = {
    "/a/{id}": {
        "get": {
            "operationId": "see",
            "parameters": [parameter("id", "path"), parameter("token", "query")],
        },
        "post": {
            "operationId": "say",
            "parameters": [parameter("id", "path")],
            "requestBody": {"required": True, "content": FORM},
        },
    }
}


def told(found: Imported) -> list[str]:
    return [one.message for one in found.notes]


def test_it_has_the_last_word_and_tells_what_it_misses() -> None:
    word = overlay(
        'tools: {"*": {timeout: 5, effect: pure}, see: {effect: idempotent}, gone: {},'
        " sa*: {arguments: {nobody: drop}}}"
    )
    found = taken(document(PATHS), overlay=word)
    assert (tools(found)["see"]["effect"], tools(found)["see"]["timeout"]) == ("idempotent", 5)
    assert [one.where for one in found.notes] == [["gone"], ["sa*.nobody"]]


def test_an_argument_is_dropped_wherever_it_is_sent() -> None:
    found = taken(document(PATHS), overlay=overlay('tools: {"*": {arguments: {token: drop}}}'))
    for name, left in (("see", {"id"}), ("say", {"id", "text"})):
        assert schema(found, name)["properties"].keys() == left
        assert "token" not in schema(found, name)["required"]
        assert "token" not in str(tools(found)[name]["config"])
    assert tools(found)["say"]["config"]["body"]["arguments"] == ["text"]
    assert found.secrets == []
    plain = taken(document(PATHS))
    assert "token" in schema(plain, "see")["required"]


def test_an_argument_becomes_a_secret_that_is_bound_to_the_host() -> None:
    word = overlay('tools: {"*": {arguments: {token: {secret: ours}}}}')
    found = taken(document(PATHS), overlay=word)
    assert tools(found)["see"]["config"]["auth"] == {
        "kind": "api_key",
        "in": "query",
        "name": "token",
        "secret": "ours",
    }
    assert [(one.name, one.hosts) for one in found.secrets] == [("ours", ["api.example.com"])]
    # No secret can stand in a body: it stays an argument, and that is told.
    assert "token" in schema(found, "say")["properties"]
    assert any("'token' as it is: it is in the body" in one for one in told(found))


def test_a_secret_is_sent_beside_the_credentials_of_the_document() -> None:
    schemes = {"key": {"type": "http", "scheme": "bearer"}}
    given = document(PATHS, components={"securitySchemes": schemes}, security=[{"key": []}])
    word = overlay("tools: {see: {arguments: {token: {secret: ours}}}}")
    auth = tools(taken(given, overlay=word))["see"]["config"]["auth"]
    assert [one["secret"] for one in auth] == ["small_key", "ours"]


def test_what_the_path_needs_stays() -> None:
    found = taken(document(PATHS), overlay=overlay("tools: {see: {arguments: {id: drop}}}"))
    assert "id" in schema(found, "see")["properties"]
    assert any("'id' as it is: it is in the path" in one for one in told(found))


def test_it_says_where_errors_and_results_are_in_an_answer() -> None:
    answer = {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}}
    paths = {"/a": {"get": {"operationId": "see", "responses": answer}}}
    plain = tools(taken(document(paths)))["see"]
    assert "output_schema" in plain
    word = overlay('tools: {"*": {response: {error: error}}, see: {response: {path: data}}}')
    tool = tools(taken(document(paths), overlay=word))["see"]
    assert tool["config"]["response"] == {"error": "error", "path": "data"}
    # The document describes the whole answer, and not what stands there.
    assert "output_schema" not in tool


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("tools:\n  see:\n    efect: pure\n", "3: see.efect", "Did you mean effect?"),
        ("tools:\n  see: {effect: wild}\n", "2: see.effect", "Write for example effect:"),
        ("tools:\n  see: {config: {}}\n", "2: see.config", "is no field of an overlay"),
        ("tools:\n  see: 1\n", "2: see", "Write for example listPets: {effect: pure}."),
        ("tools:\n  see:\n    retry: {attempts: 0}\n", "3: see.retry.attempts", "from 1 to 20"),
        ("tools:\n  see: {arguments: {token: 1}}\n", "2: see.arguments.token", "neither drop"),
        ("tools:\n  see: {arguments: {t: {secret: ''}}}\n", "2: see.arguments.t", "{secret: NAME}"),
        ("tools:\n  see: {response: {eror: e}}\n", "2: see.response", "it takes error, path"),
        ("other: {}\n", "1", "has another shape than an overlay"),
        ("tools: {a: [1}\n", "1", "is not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_line_field_and_what_to_write(
    text: str, place: str, said: str
) -> None:
    with pytest.raises(InvalidSpecs) as refused:
        overlay(text)
    assert f"mine.yaml:{place}" in str(refused.value)
    assert said in str(refused.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidSpecs) as refused:
        overlay("tools:\n  see: {efect: pure}\n  say: {timeout: x}\n")
    assert len(refused.value.problems) == 2


def test_a_word_that_contradicts_a_tool_is_told_where_it_stands() -> None:
    word = overlay("tools:\n  see: {timeout: 5}\n  say:\n    effect: compensatable\n")
    with pytest.raises(InvalidSpecs) as refused:
        taken(document(PATHS), overlay=word)
    assert "mine.yaml:3: say" in str(refused.value)
