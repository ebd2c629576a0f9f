"""Documents that are out to hurt: nothing is fetched, nothing grows without bound."""

import socket
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.sources.openapi_documents import document, taken, tools
from toolgate.errors import InvalidSpecs
from toolgate.sources.openapi import reading
from toolgate.sources.openapi.opened import MAX_BYTES, open_document
from toolgate.sources.openapi.pointers import Pointers

pytestmark = pytest.mark.req("P2", "C2")
FOREIGN = [
    "http://127.0.0.1:{port}/a.yaml#/x",
    "https://127.0.0.1:{port}/a.json",
    "//127.0.0.1:{port}/a.json",
    "other.yaml#/components/schemas/X",
    "./other.yaml",
    "../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd#/x",
    "ftp://127.0.0.1:{port}/x",
    "\\\\127.0.0.1\\share\\x",
]


class Touched(Exception):
    """A socket or a file was opened."""


@pytest.fixture
def tripwire(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes every connection and every file that is opened."""
    seen: list[str] = []

    def connect(_self: object, address: object) -> None:
        seen.append(f"connect {address}")
        raise Touched

    def opened(path: Path, *_given: Any, **_more: Any) -> None:
        seen.append(f"open {path}")
        raise Touched

    def resolve(host: object, *_given: Any, **_more: Any) -> None:
        seen.append(f"resolve {host}")
        raise Touched

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(Path, "open", opened)
    return seen


def places(reference: str) -> dict[str, Any]:
    """A document that has a reference wherever one can stand."""
    ref = {"$ref": reference}
    media = {"content": {"application/json": {"schema": ref}}}
    return document(
        {
            "/item": ref,
            "/parameter": {"get": {"operationId": "parameter", "parameters": [ref]}},
            "/body": {"post": {"operationId": "body", "requestBody": ref}},
            "/schema": {"post": {"operationId": "schema", "requestBody": media}},
            "/answer": {"get": {"operationId": "answer", "responses": {"200": ref}}},
            "/answered": {"get": {"operationId": "answered", "responses": {"200": media}}},
        }
    )


@pytest.mark.parametrize("reference", FOREIGN)
def test_no_reference_leads_out_of_the_document(reference: str, tripwire: list[str]) -> None:
    found = taken(places(reference.format(port=9)))
    assert tripwire == []
    assert set(tools(found)) == {"schema", "answer", "answered"}
    assert {one.operation for one in found.skipped} == {"/item", "GET /parameter", "POST /body"}
    assert all("never fetched" in one.reason for one in found.skipped)
    assert any("never fetched" in one.message for one in found.notes)


def test_the_tripwire_sees_a_reader_that_does_follow(
    tripwire: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def followed(_self: Pointers, reference: str) -> Any:
        if reference.startswith("http"):
            socket.create_connection(("127.0.0.1", 9))
        with Path(reference).open("rb"):
            pass

    monkeypatch.setattr(Pointers, "_look", followed)
    for reference in (FOREIGN[0].format(port=9), "/etc/passwd"):
        with pytest.raises(Touched):
            taken(places(reference))
    assert [one.split()[0] for one in tripwire] == ["resolve", "open"]


def test_references_inside_are_followed() -> None:
    given = document(
        {
            "/a": {
                "get": {"operationId": "see", "parameters": [{"$ref": "#/components/parameters/P"}]}
            }
        },
        components={"parameters": {"P": {"name": "p", "in": "query"}}},
    )
    assert list(taken(given).tools[0]["input_schema"]["properties"]) == ["p"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/components/schemas/A"},
        {"$ref": "#/components/schemas/Nothing"},
        {"$ref": "#"},
        {"$ref": "#/components/schemas/Wide"},
        {"allOf": [{"$ref": "#/components/schemas/Twice"}] * 8},
        {"type": "string", "pattern": "(?:(?=a)a+)+$"},
        {"enum": list(range(20_000))},
        {"type": "array", "items": "no", "required": 3, "enum": 1, "properties": []},
    ],
)
def test_schemas_that_go_round_or_grow_are_cut_or_told(schema: dict[str, Any]) -> None:
    schemas: dict[str, Any] = {
        # Only aliases, which lead back to themselves.
        "A": {"$ref": "#/components/schemas/B"},
        "B": {"$ref": "#/components/schemas/A"},
        "Wide": {"properties": {f"p{at}": {"description": "x" * 200} for at in range(3_000)}},
        "Twice": {"allOf": [{"$ref": "#/components/schemas/Twice2"}] * 8},
        "Twice2": {"allOf": [{"$ref": "#/components/schemas/Twice3"}] * 8},
        "Twice3": {"allOf": [{"$ref": "#/components/schemas/Twice4"}] * 8},
        "Twice4": {"allOf": [{"type": "object"}] * 8},
    }
    body = {"content": {"application/json": {"schema": schema}}}
    given = document(
        {"/a": {"post": {"operationId": "do", "requestBody": body}}},
        components={"schemas": schemas},
    )
    found = taken(given)
    assert found.notes or found.skipped
    assert len(found.tools) + len(found.skipped) == 1


def test_a_schema_of_a_thousand_levels_is_open_below_the_first() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    query = {"name": "q", "in": "query", "schema": deep}
    found = taken(document({"/a": {"get": {"operationId": "see", "parameters": [query]}}}))
    assert [tool["name"] for tool in found.tools] == ["see"]
    assert any("levels" in one.message for one in found.notes)


@pytest.mark.parametrize(
    "path",
    [
        "/a/../admin", "/a/%2e%2e/admin", "//evil.example/x", "/a\\b", "/a b", "/a\r\nHost: x",
        "/a#b", "a", "", "/./a", "/a/{}",
    ],
)  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_no_tool(path: str) -> None:
    found = taken(document({path: {"get": {"operationId": "see"}}, "/fine": {"get": {}}}))
    assert list(tools(found)) == ["get_fine"]
    assert len(found.skipped) == 1
    assert found.skipped[0].operation.isprintable()


def test_100_000_operations_are_refused_with_what_to_do() -> None:
    given = document({f"/p{at}": {"get": {}} for at in range(100_000)})
    with pytest.raises(InvalidSpecs, match="more than 5,000 operations"):
        taken(given)


def test_a_document_of_10_megabytes_is_read_with_progress() -> None:
    filler = "Words that say nothing about the operation. " * 110
    paths = {
        f"/p{at}/{{id}}": {"get": {"operationId": f"op{at}", "description": filler}}
        for at in range(2_100)
    }
    raw = orjson.dumps(document(paths))
    assert len(raw) > 10_000_000
    told: list[tuple[int, int]] = []

    def tell(done: int, of: int) -> None:
        told.append((done, of))

    found = taken(raw, progress=tell)
    assert (len(found.tools), told[-1], len(told)) == (2_100, (2_100, 2_100), 2_100)


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidSpecs, match="at most"):
        open_document(b" " * (MAX_BYTES + 1), file="api.yaml")
    with pytest.raises(InvalidSpecs, match="far too deep"):
        open_document(b"[" * 200_000, file="api.json")


def test_a_bound_is_what_keeps_the_number_of_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    given = document({f"/p{at}": {"get": {}} for at in range(12)})
    monkeypatch.setattr(reading, "MAX_TOOLS", 11)
    with pytest.raises(InvalidSpecs):
        taken(given)
    monkeypatch.setattr(reading, "MAX_TOOLS", 12)
    assert len(taken(given).tools) == 12


def test_what_operations_share_is_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {f"w{at}": {"type": "string", "description": "d" * 90} for at in range(100)}
    ref = {"schema": {"$ref": "#/components/schemas/Big"}}
    body = {"requestBody": {"content": {"application/json": ref}}}
    given = document({f"/p{at}": {"post": body} for at in range(40)})
    given["components"] = {"schemas": {"Big": {"type": "object", "properties": words}}}
    # The control: it is written once in the document, and forty times in its tools.
    whole = len(orjson.dumps(list(taken(given).tools)))
    assert whole > 20 * len(orjson.dumps(given))
    monkeypatch.setattr(reading, "MAX_WRITTEN", whole // 2)
    told: list[int] = []

    def tell(done: int, _of: int) -> None:
        told.append(done)

    with pytest.raises(InvalidSpecs, match="tools of more than"):
        taken(given, progress=tell)
    assert len(told) < 25


@pytest.mark.parametrize("holder", ["path", "operation"])
@pytest.mark.parametrize("given", [7, "id", {"name": "id", "in": "query"}, True])
def test_parameters_that_cannot_be_read_are_not_left_out_in_silence(
    holder: str, given: Any
) -> None:
    get: dict[str, Any] = {"operationId": "one"}
    path = {"get": get, "parameters": given} if holder == "path" else {"get": get}
    if holder == "operation":
        get["parameters"] = given
    found = taken(document({"/a": path, "/b": {"get": {"operationId": "two", "parameters": None}}}))
    assert list(tools(found)) == ["two"]
    [skipped] = found.skipped
    assert (skipped.operation, skipped.reason) == ("GET /a", "has parameters that are no list")
