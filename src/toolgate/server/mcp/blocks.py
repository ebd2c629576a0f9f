"""Results as blocks of MCP where JSON would hide them: plots as text, pictures as pictures."""

from typing import Any, cast

import orjson

from toolgate.spec.drawn import TEXT, drawn
from toolgate.spec.tool import ToolSpec

Block = dict[str, Any]
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_FILES = b'"media_type"'


def is_bare(spec: ToolSpec) -> bool:
    """Whether `blocks` has nothing to show of any result of a tool."""
    schema = spec.output_schema
    return schema is None or (drawn(schema) is None and _FILES not in schema.raw)


def blocks(spec: ToolSpec | None, data: Any) -> list[Block] | None:
    """What a client is shown of a result, or `None` where that is its JSON alone."""
    schema = None if spec is None else spec.output_schema
    if schema is None or type(data) is not dict:
        return None
    fields = cast("dict[str, Any]", data)
    found = drawn(schema)
    if found is not None and found.kind == TEXT:
        return _text(fields, found.field)
    return _pictures(fields) if _FILES in schema.raw else None


def _text(fields: dict[str, Any], name: str) -> list[Block] | None:
    """The text as it is, and behind it the rest."""
    text = fields.get(name)
    if type(text) is not str:
        return None
    rest = {key: value for key, value in fields.items() if key != name}
    return [_said(text), *([_said(orjson.dumps(rest).decode())] if rest else [])]


def _pictures(fields: dict[str, Any]) -> list[Block] | None:
    """The result without what the pictures hold, and behind it the pictures."""
    files = fields.get("files")
    if type(files) is not list:
        return None
    shown: list[Block] = []
    told: list[Any] = []
    for one in cast("list[Any]", files):
        if _is_picture(one):
            shown.append({"type": "image", "data": one["content"], "mimeType": one["media_type"]})
            told.append({key: value for key, value in one.items() if key != "content"})
        else:
            told.append(one)
    if not shown:
        return None
    return [_said(orjson.dumps({**fields, "files": told}).decode()), *shown]


def _is_picture(one: Any) -> bool:
    if type(one) is not dict:
        return False
    fields = cast("dict[str, Any]", one)
    is_whole = fields.get("encoding") == "base64" and type(fields.get("content")) is str
    return is_whole and fields.get("media_type") in _PICTURES


def _said(text: str) -> Block:
    return {"type": "text", "text": text}
