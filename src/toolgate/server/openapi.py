"""`GET /openapi.json`: what the table says, in the words of OpenAPI 3.1. Written once."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec
import orjson

from toolgate.errors import ToolgateError
from toolgate.server import answers
from toolgate.server.problems import STATUS, WIRE
from toolgate.server.route import Route

_REF = "#/components/schemas/"
_UNTOLD = frozenset({"title", "x-type"})
_JSON = "application/json"
_PROBLEM = "application/problem+json"
_EVENTS = "text/event-stream"
_BY_CODE: Mapping[str, int] = {
    kind.code: status for kind, status in STATUS.items() if "code" in vars(kind)
} | {code: status for code, (status, _sentence) in WIRE.items()}
# What any address can say, with a key or without.
_ALWAYS = (ToolgateError.code, "misdirected_request")
# What any that needs a key can.
_KEYED = (
    "unauthenticated",
    "insufficient_scope",
    "permission_denied",
    "invalid_request",
    "overloaded",
)
_ABOUT = (
    "A catalog says what exists, a gate says what is allowed, an executor does it once, and a "
    "ledger remembers it. Errors are RFC 9457 problems with a stable `code`."
)
_KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The call's own key; the same as `idempotency_key` in the body.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$", "minLength": 1, "maxLength": 255},
}
_TAG_HEADER = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The `ETag` of the answer that is kept; 304 where it still holds.",
    "schema": {"type": "string"},
}


class Schemas:
    """Shapes as JSON schemas, each once, by names that say whether it is sent or given."""

    def __init__(self, shapes: Iterable[Any]) -> None:
        listed = list(dict.fromkeys(shapes))
        found, components = msgspec.json.schema_components(listed, ref_template="{name}")
        self._names = _names(components)
        self._of = dict(zip(listed, map(self._plain, found), strict=True))
        self.components = {
            self._names[name]: self._plain(schema) for name, schema in components.items()
        }

    def of(self, shape: Any) -> Any:
        """The schema of a shape."""
        return self._of[shape]

    def fields(self, shape: Any) -> Mapping[str, Any]:
        """The schemas of its fields."""
        return self.components[self.of(shape)["$ref"].rpartition("/")[2]]["properties"]

    def _plain(self, schema: Any) -> Any:
        """As others read it: a number that a query holds as a text is told as a number, and what
        is left out has no value of its own.
        """
        if isinstance(schema, (list, tuple)):
            return [self._plain(one) for one in cast("list[Any]", schema)]
        if not isinstance(schema, dict):
            return schema
        given = cast("dict[str, Any]", schema)
        if "$ref" in given:
            return {"$ref": _REF + self._names[given["$ref"]]}
        told = {
            name: of if name in {"enum", "default"} else self._plain(of)
            for name, of in given.items()
            if name not in _UNTOLD and not (name == "default" and of in ("", None, (), {}))
        }
        return told | {"type": given["x-type"]} if "x-type" in given else told


def _names(components: Iterable[str]) -> dict[str, str]:
    """Two shapes of one name: what is given keeps it, what is sent is a request."""
    named: dict[str, str] = {}
    for name in components:
        *home, last = name.split(".")
        if home and home[-1] != "answers":
            last += "Request"
        elif home and "admin" in home and last in named.values():
            last = f"Admin{last}"
        named[name] = last
    if len(set(named.values())) != len(named):
        raise ValueError(f"two schemas have one name: {sorted(named.values())}")
    return named


def document(routes: Iterable[Route], version: str) -> bytes:
    """The whole description."""
    listed = list(routes)
    shapes = [shape for route in listed for shape in (route.body, route.gives) if shape is not None]
    schemas = Schemas([answers.Problem, *shapes])
    # Fields of a query stand by themselves, and their shapes are nowhere referred to.
    queries = Schemas(route.query for route in listed)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.address, {})[route.method.lower()] = _operation(
            route, schemas, queries
        )
    return orjson.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "toolgate", "version": version, "description": _ABOUT},
            "paths": paths,
            "components": {
                "schemas": schemas.components,
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


def _operation(route: Route, schemas: Schemas, queries: Schemas) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": _id(route),
        "summary": route.summary,
        "tags": [_tag(route)],
        "responses": _responses(route, schemas),
    }
    parameters = [*_path(route), *_query(route, queries), *_headers(route)]
    if parameters:
        told["parameters"] = parameters
    if route.roles:
        # What can be shown without a key is, to whoever is on this machine.
        told["security"] = [{"key": []}] if route.shown is None else [{"key": []}, {}]
        told["description"] = f"For keys with the role {', '.join(sorted(route.roles))}."
    if route.body is not None:
        told["requestBody"] = {
            "required": route.needs_body,
            "content": {_JSON: {"schema": schemas.of(route.body)}},
        }
    return told


def _path(route: Route) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema} for name in route.params
    ]


def _query(route: Route, queries: Schemas) -> list[dict[str, Any]]:
    fields = queries.fields(route.query)
    return [{"name": name, "in": "query", "schema": of} for name, of in fields.items()]


def _headers(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if route.streams and route.body is not None:
        found.append(_KEY_HEADER)
    if route.tagged:
        found.append(_TAG_HEADER)
    return found


def _responses(route: Route, schemas: Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if route.gives is not None:
        content[_JSON] = {"schema": schemas.of(route.gives)}
    elif not route.streams:
        content["text/plain"] = {"schema": {"type": "string"}}
    if route.streams:
        content[_EVENTS] = {"schema": {"type": "string"}}
    done: dict[str, Any] = {"description": "Done.", "content": content}
    if route.tagged:
        done["headers"] = {"ETag": {"required": True, "schema": {"type": "string"}}}
    told: dict[str, Any] = {"200": done}
    if route.tagged:
        told["304"] = {"description": "It is as it was.", "headers": done["headers"]}
    by_status: dict[int, list[str]] = {}
    for code in _codes(route):
        by_status.setdefault(_BY_CODE.get(code, 500), []).append(code)
    for status, codes in sorted(by_status.items()):
        told[str(status)] = _problem(status, codes, schemas)
    if route.path == "/readyz":
        told["503"] = {"description": "Not ready.", "content": content}
    return told


def _codes(route: Route) -> Iterable[str]:
    codes = [*_ALWAYS, *route.codes]
    if route.roles:
        codes += _KEYED
    if route.path == "/metrics":
        codes.append("not_found")
    if route.body is not None:
        codes.append("request_timeout")
    return dict.fromkeys(codes)


def _problem(status: int, codes: list[str], schemas: Schemas) -> dict[str, Any]:
    known = {"properties": {"code": {"enum": codes}, "status": {"const": status}}}
    told: dict[str, Any] = {
        "description": ", ".join(f"`{code}`" for code in codes),
        "content": {_PROBLEM: {"schema": {"allOf": [schemas.of(answers.Problem), known]}}},
    }
    if status == 401:
        told["headers"] = {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}}
    if status in {429, 503}:
        told["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}}
    return told


def _id(route: Route) -> str:
    """A name for generated clients: `get_v1_tools_name`."""
    words = re.findall(r"[a-z0-9]+", route.path.removesuffix(".json").lower())
    return "_".join([route.method.lower(), *words])


def _tag(route: Route) -> str:
    parts = route.path.split("/")
    return "admin" if "admin" in parts else parts[2] if len(parts) > 2 else "house"
