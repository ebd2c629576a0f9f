"""What a tool makes of an answer that says yes."""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from toolgate.call import Call
from toolgate.errors import InvalidOutput, ToolError
from toolgate.executor.mapping import UnmappedError, found
from toolgate.net.hidden import value_without, without
from toolgate.providers.http import read
from toolgate.providers.http.words import cleaned
from toolgate.text.values import MOST, are_too_many

# orjson writes nothing deeper than 254.
_SHALLOW = 250
_CHARSET = re.compile(r"charset=\"?([\w-]+)", re.IGNORECASE)
# Not every codec that Python knows: some take far longer than their text is long.
_CHARSETS = re.compile(
    r"utf-?(8|16|32)(-?[lb]e)?|us-ascii|ascii|(iso-?8859|windows|cp|latin)-?\d+(-\d+)?|shift_jis|"
    r"euc-(jp|kr)|iso-2022-jp|gb(k|2312|18030)|big5|koi8-[ru]",
    re.IGNORECASE,
)
_TEXTS = re.compile(r"text/|application/(?:[\w.+-]*\+)?(?:xml|yaml|javascript|x-ndjson)\b")
_JSON = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?json\b")
_MOST = 64 * 1024 * 1024
_NO_CONTENT = frozenset({204, 205, 304})


class Reading(NamedTuple):
    """`path`: where in the JSON the result is. `headers`: those that belong to the result."""

    most: int
    kind: str = "auto"
    path: str = ""
    error: str = ""
    headers: tuple[str, ...] = ()


def reading(value: Any, most: int) -> Reading:
    """Read `response` of a config."""
    given = read.only(
        value,
        {
            "path": read.text,
            "kind": read.word("auto", "json", "text", "binary"),
            "headers": lambda names: tuple(read.token(name) for name in read.listed(names, 50)),
            "error": read.text,
            "most": read.count(1, _MOST),
        },
    )
    if given.get("kind") in {"text", "binary"} and (given.get("path") or given.get("error")):
        raise ValueError(f"has a path into JSON, but kind {given['kind']}; leave one out")
    return Reading(most)._replace(**given)


def result(
    call: Call,
    how: Reading,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    hidden: tuple[bytes, ...],
) -> Any:
    """The result: a JSON value, a text, or content that says what it is."""
    value = _value(call, how, status, headers.get("Content-Type", ""), body, hidden)
    if how.error:
        _refuse(call, how.error, value)
    if how.path:
        try:
            value = found(value, how.path)
        except UnmappedError:
            raise InvalidOutput(
                f"{call.spec.name!r} ran, but its answer has nothing at {how.path!r}."
            ) from None
    if how.headers:
        names = {name.lower() for name in how.headers}
        kept = {
            name: without(of.encode("utf-8", "replace"), hidden).decode()
            for name, of in headers.items()
            if name.lower() in names
        }
        return {"status": status, "headers": kept, "body": value}
    return value


def _value(
    call: Call, how: Reading, status: int, media_type: str, body: bytes, hidden: tuple[bytes, ...]
) -> Any:
    if status in _NO_CONTENT or not body:
        return None
    kind = media_type.partition(";")[0].strip().lower()
    if how.kind == "json" or (how.kind == "auto" and _JSON.match(kind)):
        return _json(call, without(body, hidden), hidden)
    if how.kind == "text" or (how.kind == "auto" and (_TEXTS.match(kind) or not kind)):
        text = _text(body, media_type)
        if text is not None or how.kind == "text":
            told = body.decode("utf-8", "replace") if text is None else text
            return without(told.encode(), hidden).decode()
    return _content(call, kind or "application/octet-stream", without(body, hidden))


def _json(call: Call, body: bytes, hidden: tuple[bytes, ...]) -> Any:
    if are_too_many(body):
        raise InvalidOutput(
            f"{call.spec.name!r} ran, but its answer has more than {MOST:,} values. Ask for less."
        )
    try:
        value = value_without(orjson.loads(body), body, hidden)
        if body.count(b"[") + body.count(b"{") > _SHALLOW:
            orjson.dumps(value)
    except (orjson.JSONDecodeError, TypeError, RecursionError):
        raise InvalidOutput(
            f"{call.spec.name!r} ran, but its answer is no JSON that can be read, or far too deep."
        ) from None
    return value


def _text(body: bytes, media_type: str) -> str | None:
    found = _CHARSET.search(media_type)
    charset = found[1] if found else "utf-8"
    if not _CHARSETS.fullmatch(charset):
        return None
    try:
        return body.decode(charset)
    except (UnicodeError, LookupError):
        return None


def _content(call: Call, kind: str, body: bytes) -> dict[str, Any]:
    """Bytes, in the words that MCP has for them."""
    data = b64encode(body).decode()
    first = kind.partition("/")[0]
    if first in {"image", "audio"}:
        return {"content": [{"type": first, "data": data, "mimeType": kind}]}
    resource = {"uri": f"call:{call.id}", "mimeType": kind, "blob": data}
    return {"content": [{"type": "resource", "resource": resource}]}


def _refuse(call: Call, path: str, value: Any) -> None:
    try:
        told = found(value, path)
    except UnmappedError:
        return
    if told:
        why = told if isinstance(told, str) else orjson.dumps(told).decode()
        raise ToolError(f"The service behind {call.spec.name!r} refused it: {cleaned(why)}")
