"""What a caller is told of an answer: a page as text, JSON as data, anything else by its kind."""

import re
from typing import Any, Literal, NamedTuple

import orjson

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.web.charset import decoded
from toolgate.tools.web.fetching import MOST, Fetched, seconds_left
from toolgate.tools.web.invisible import clean

Format = Literal["markdown", "text", "raw"]
LIMIT = 50_000
_READING = 10.0
_HTML = re.compile(r"text/html|application/xhtml\+xml")
_JSON = re.compile(r"(?:application|text)/(?:[\w.-]+\+)?json\b")
_TEXT = re.compile(
    r"text/|application/(?:[\w.+-]*\+)?(?:xml|yaml|x-yaml|javascript|x-ndjson|toml)\b"
)
# Nothing of it is tried twice: the text is a stranger's, and is looked at on the loop.
_LIKE_HTML = re.compile(
    r"\s*+(?:<!--(?:(?!-->).)*+-->\s*+)*+<(?:!doctype\s++html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
# orjson writes nothing deeper than 254.
_SHALLOW = 250
_TOLD = ("Location", "Retry-After", "ETag", "Last-Modified", "Link", "Allow", "Content-Language")
_LONGEST = 1_000


async def told(
    means: Means,
    call: Call,
    page: Fetched,
    *,
    format: Format = "markdown",  # noqa: A002  as the tools name it
    navigation: bool = False,
    offset: int = 0,
    limit: int = LIMIT,
) -> dict[str, Any]:
    """The result of a tool that fetches: always with where it comes from and when."""
    result: dict[str, Any] = {
        "url": page.url,
        "status": page.status,
        "ok": 200 <= page.status < 300,
        "kind": "empty",
        "media_type": page.media_type,
        "text": "",
        "size": page.size,
        "cut": page.is_cut,
        "fetched_at": page.fetched_at,
    }
    if headers := {
        one.lower(): page.headers[one][:_LONGEST] for one in _TOLD if one in page.headers
    }:
        result["headers"] = headers
    notes = [f"Only the first {MOST:,} bytes were fetched."] if page.is_cut else []
    if page.body or page.size:
        result |= await _content(means, call, page, format=format, navigation=navigation)
    if result["kind"] in {"html", "text"}:
        text = result["text"]
        result["text"] = text[offset : offset + limit]
        result["length"] = len(text)
        result["next"] = offset + limit if offset + limit < len(text) else None
    if "note" in result:
        notes.append(result["note"])
    return result | ({"note": " ".join(notes)} if notes else {})


class Shown(NamedTuple):
    """What a body is: `html`, `json`, `text` or `binary`, and its text."""

    kind: str
    text: str = ""
    charset: str = ""


def shown(page: Fetched) -> Shown:
    """By what the server says, and by what it is."""
    media = page.media_type
    read = decoded(page.body, page.content_type) if page.body else None
    kind = "binary"
    if _HTML.match(media):
        kind = "html"
    elif _JSON.match(media):
        kind = "json"
    elif not media or media == "application/octet-stream" or _TEXT.match(media):
        kind = "text"
    if read is None or kind == "binary":
        return Shown("binary")
    if not media and _LIKE_HTML.match(read[0]):
        kind = "html"
    return Shown(kind, *read)


async def read_page(
    means: Means, call: Call, html: str, url: str, *, navigation: bool, plain: bool
) -> dict[str, Any]:
    """A page's title, text, headings and links, read in a worker."""
    return await means.workers.run(
        "toolgate.tools.web.page:page",
        {"html": html, "url": url, "navigation": navigation, "plain": plain},
        seconds=seconds_left(call, _READING),
    )


async def _content(
    means: Means,
    call: Call,
    page: Fetched,
    *,
    format: Format,  # noqa: A002  as the tools name it
    navigation: bool,
) -> dict[str, Any]:
    kind, text, charset = shown(page)
    if kind == "binary":
        return {"kind": kind, "note": "It is no text, and is not shown."}
    if kind == "json" and format != "raw" and not page.is_cut:
        return _json(page.body, text) | {"charset": charset}
    kind = "text" if kind == "json" else kind
    if format == "raw" or kind == "text":
        return {
            "kind": kind,
            "text": text if format == "raw" else clean(text),
            "charset": charset,
        }
    found = await read_page(
        means, call, text, page.url, navigation=navigation, plain=format == "text"
    )
    result = {"kind": kind, "title": found["title"], "text": found["text"], "charset": charset}
    if format == "text":
        result["links"] = found["links"]
    if not found["text"].strip():
        result["note"] = "The page has no text of its own: most likely a script would bring it."
    return result


def _json(body: bytes, text: str) -> dict[str, Any]:
    try:
        data = orjson.loads(text)
        if body.count(b"[") + body.count(b"{") > _SHALLOW:
            orjson.dumps(data)
    except (orjson.JSONDecodeError, TypeError, RecursionError):
        note = "It is said to be JSON, and cannot be read as such."
        return {"kind": "text", "text": clean(text), "note": note}
    return {"kind": "json", "data": data}
