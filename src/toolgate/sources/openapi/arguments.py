"""A tool's arguments: what an operation takes in its path, query, headers, cookies and body."""

import re
from typing import Any, cast

from toolgate.sources.openapi.bodies import Media, choice
from toolgate.sources.openapi.examples import examples_of, field_of, shown
from toolgate.sources.openapi.naming import Unique, argument
from toolgate.sources.openapi.operations import Operation, Request
from toolgate.sources.openapi.pointers import Unresolved
from toolgate.sources.openapi.prose import printable, tidy
from toolgate.sources.openapi.report import Notes
from toolgate.sources.openapi.schemas import Part, Schemas

# The order in which names are given: who comes later has its place behind the name.
_PLACES = ("path", "query", "header", "cookie")
_USUAL = {
    "path": ("simple", False),
    "query": ("form", True),
    "header": ("simple", False),
    "cookie": ("form", True),
}
_STYLES = {
    "path": {"simple", "label", "matrix"},
    "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
    "header": {"simple"},
    "cookie": {"form"},
}
# OpenAPI has other words for these, and the client sets the rest.
_NOT_ARGUMENTS = frozenset({
    "accept", "content-type", "authorization", "host", "content-length", "transfer-encoding",
    "connection", "keep-alive", "te", "trailer", "upgrade", "expect", "proxy-authorization",
    "proxy-connection", "accept-encoding", "cookie",
})  # fmt: skip
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
_IN_PATH = re.compile(r"\{([^{}]*)\}")
_ABOUT = 600
_MAX_FIELDS = 200
_PLAIN = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "description", "examples",
     "default", "deprecated"}
)  # fmt: skip


class Arguments:
    """Collects the arguments of one operation, and what its provider does with each."""

    def __init__(self, operation: Operation, schemas: Schemas, notes: Notes) -> None:
        self._operation = operation
        self._schemas = schemas
        self._notes = notes
        self._names = Unique(64)
        self._required: list[str] = []
        self._properties: dict[str, Any] = {}
        self._refs: set[str] = set()
        self.parameters: list[dict[str, Any]] = []
        self.body: dict[str, Any] | None = None

    def take(self, request: Request) -> None:
        """Everything that a request has."""
        in_path = dict.fromkeys(_IN_PATH.findall(self._operation.path))
        if "" in in_path:
            raise Unresolved("has {} in its path without a name")
        by_place = {place: [one for one in request.parameters if one["in"] == place]
                    for place in _PLACES}  # fmt: skip
        declared = {one["name"]: one for one in by_place["path"]}
        for name in declared.keys() - in_path.keys():
            self._note(f"the path has no place for {printable(name, 60)!r}; left out")
        for name in in_path:
            self._parameter(declared.get(name, {"name": name, "in": "path"}), "path")
        for place in _PLACES[1:]:
            for one in by_place[place]:
                if self._can_be_sent(one, place):
                    self._parameter(one, place)
        if request.body is not None:
            self._body(request.body)

    def place_of(self, called: str) -> tuple[str, str] | None:
        """Where an argument is sent, and as what; nothing where there is no such argument."""
        if called not in self._properties:
            return None
        placed = next((one for one in self.parameters if one["argument"] == called), None)
        return ("body", called) if placed is None else (placed["in"], placed["name"])

    def drop(self, called: str) -> None:
        """Leave an argument out that is no part of the path."""
        del self._properties[called]
        self._required = [one for one in self._required if one != called]
        self.parameters = [one for one in self.parameters if one["argument"] != called]
        if self.body is None:
            return
        if self.body.get("argument") == called or self.body.get("arguments") == [called]:
            self.body = None
            return
        for key in ("arguments", "files"):
            if key in self.body:
                self.body[key] = [one for one in self.body[key] if one != called]
        self.body.get("encoding", {}).pop(called, None)

    def part(self) -> Part:
        """The schema of all of them, without definitions."""
        schema: dict[str, Any] = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        return Part(schema | {"additionalProperties": False}, frozenset(self._refs))

    def _can_be_sent(self, one: dict[str, Any], place: str) -> bool:
        name = one["name"]
        if place == "query" or (_HEADER.match(name) and name.lower() not in _NOT_ARGUMENTS):
            return True
        if name.lower() not in {"accept", "content-type", "authorization"}:
            self._note(f"the {place} {printable(name, 60)!r} is not an argument; left out")
        return False

    def _parameter(self, one: dict[str, Any], place: str) -> None:
        name = one["name"]
        called = self._named(name, place)
        entry: dict[str, Any] = {"name": name, "in": place, "argument": called}
        schema, is_json, holder = _schema_of(one)
        if is_json:
            entry["style"] = "json"
        else:
            entry |= self._style(one, place)
        part = self._schemas.part(schema, self._operation.shown)
        part = part._replace(schema=shown(part.schema, self._examples(holder)))
        self._add(called, part, one, required=place == "path" or one.get("required") is True)
        self.parameters.append(entry)

    def _style(self, one: dict[str, Any], place: str) -> dict[str, Any]:
        """Only what differs from what holds anyway."""
        usual, usually = _USUAL[place]
        style = one.get("style", usual)
        if "collectionFormat" in one:
            style = "tabDelimited" if one["collectionFormat"] == "tsv" else usual
        elif style not in _STYLES[place]:
            self._note(f"the style {printable(style, 40)!r} is none of a {place}; {usual} is sent")
            style = usual
        explode = one.get("explode", style == "form")
        found: dict[str, Any] = {} if style == usual else {"style": style}
        if isinstance(explode, bool) and explode != (usually if style == usual else False):
            found["explode"] = explode
        return found

    def _body(self, body: dict[str, Any]) -> None:
        chosen = choice(body.get("content"))
        if chosen is None:
            self._note("the body has no media type that can be sent; left out")
            return
        part = self._schemas.part(chosen.schema, self._operation.shown)
        self.body = {"kind": chosen.kind, "media_type": chosen.type} | chosen.encoding
        needed = body.get("required") is True
        if chosen.kind in {"json", "form", "multipart"} and self._spread(
            part, chosen, needed=needed
        ):
            return
        called = self._named("body", "body")
        self.body["argument"] = called
        if chosen.kind in {"text", "binary"}:
            told = "Its bytes in base64." if chosen.kind == "binary" else ""
            part = Part({"type": "string"} | ({"description": told} if told else {}), frozenset())
        part = part._replace(schema=shown(part.schema, self._examples(chosen.fields)))
        self._add(called, part, body, required=needed)

    def _spread(self, part: Part, chosen: Media, *, needed: bool) -> bool:
        """Each field of the body as an argument, where it is a plain object of plain names."""
        whole = self._schemas.unfolded(part)
        schema = whole.schema
        fields = schema.get("properties")
        if not fields or len(fields) > _MAX_FIELDS or not schema.keys() <= _PLAIN:
            return False
        if schema.get("additionalProperties", False) is not False:
            return False
        required = set(schema.get("required", ()))
        if required and not needed:
            return False
        if any(name != argument(name) or self._names.has(name) for name in fields):
            return False
        files = [name for name, field in fields.items() if _is_file(field)]
        examples = self._examples(chosen.fields)
        for name, field in fields.items():
            given = _file(field) if chosen.kind == "multipart" and name in files else field
            # Beside `true`, which takes anything, there is no room for one.
            is_open = isinstance(given, bool)
            told = given if is_open else shown(given, field_of(examples, name))
            self._properties[self._names.take(name)] = told
            if name in required:
                self._required.append(name)
        self._refs |= whole.refs
        assert self.body is not None  # noqa: S101  its caller has made it
        self.body["arguments"] = list(fields)
        if files and chosen.kind == "multipart":
            self.body["files"] = files
        return True

    def _add(self, called: str, part: Part, one: dict[str, Any], *, required: bool) -> None:
        schema = part.schema
        about = tidy(one.get("description"), _ABOUT)
        if about:
            schema = schema | {"description": about}
        if one.get("deprecated") is True:
            schema = schema | {"deprecated": True}
        self._properties[called] = schema
        self._refs |= part.refs
        if required:
            self._required.append(called)

    def _examples(self, holder: Any) -> list[Any]:
        return examples_of(holder, self._schemas.pointers)

    def _named(self, name: str, place: str) -> str:
        called = argument(name)
        if self._names.has(called):
            called = argument(f"{called}_{place}")
        return self._names.take(called)

    def _note(self, message: str) -> None:
        self._notes.add(message, self._operation.shown)


def _schema_of(one: dict[str, Any]) -> tuple[Any, bool, dict[str, Any]]:
    """A parameter's schema, whether its value is written as JSON, and what shows examples."""
    content = one.get("content")
    if isinstance(content, dict) and content:
        media = next(iter(cast("dict[str, Any]", content).values()))
        fields = cast("dict[str, Any]", media) if isinstance(media, dict) else {}
        return fields.get("schema", {}), True, fields
    return one.get("schema") or {"type": "string"}, False, one


def _is_file(field: Any) -> bool:
    fields = cast("dict[str, Any]", field) if isinstance(field, dict) else {}
    held: Any = fields.get("items") if fields.get("type") == "array" else fields
    return isinstance(held, dict) and cast("dict[str, Any]", held).get("format") == "binary"


def _file(field: dict[str, Any]) -> dict[str, Any]:
    told = "base64, or an object of filename, media_type and base64 or text."
    about = f"{field.get('description', '')} A file: {told}".strip()
    one: dict[str, Any] = {"type": ["string", "object"]}
    if field.get("type") == "array":
        return {"type": "array", "items": one, "description": about}
    return one | {"description": about}
