"""Where a pure tool can be read as a resource: the field, and what contradicts it."""

from typing import Any

import pytest

from toolgate.errors import InvalidSpecs
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, Resource

pytestmark = pytest.mark.req("C1", "V1")
HERE = Origin("test", "here")
PURE: dict[str, Any] = {
    "name": "note",
    "effect": "pure",
    "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}},
}


def test_it_is_a_uri_or_a_uri_with_what_it_is() -> None:
    plain = read_tool(PURE | {"resource": "notes://{id}"}, origin=HERE).resource
    assert plain == Resource(uri="notes://{id}")
    assert Resource(uri="notes://{id}").names == ("id",)
    whole = {"uri": "notes://all", "media_type": "text/plain"}
    found = read_tool(PURE | {"resource": whole}, origin=HERE).resource
    assert found == Resource(uri="notes://all", media_type="text/plain")
    assert Resource(uri="notes://all").names == ()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"resource": "no uri"}, "has no uri such as"),
        ({"resource": "notes://{+id}"}, "has no uri such as"),
        ({"resource": "notes://{id"}, "has no uri such as"),
        ({"resource": {"media_type": "text/plain"}}, "has no uri such as"),
        ({"resource": {"uri": "a:b", "size": 1}}, "unknown key 'size'"),
        ({"resource": "notes://{other}"}, "names 'other', which input_schema lacks"),
        ({"resource": "notes://{id}", "effect": "idempotent"}, "reading changes nothing"),
    ],
)
def test_what_cannot_be_read_is_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidSpecs, match=told):
        read_tool(PURE | fields, origin=HERE)
