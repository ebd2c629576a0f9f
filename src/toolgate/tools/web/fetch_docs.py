"""`fetch_docs`: a page of documentation, whole or those of its sections that are asked for."""

from typing import Any
from urllib.parse import unquote

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.web import asking
from toolgate.tools.web.answer import read_page, shown
from toolgate.tools.web.fetching import Fetched, gotten
from toolgate.tools.web.invisible import clean
from toolgate.tools.web.sections import Section, about, headings_of, named, sections

_ACCEPT = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1"
_LIMIT = 20_000
_MOST_TOLD = 200
_MOST_LISTED = 30


async def fetch_docs(
    means: Means,
    call: Call,
    *,
    url: str,
    section: str = "",
    query: str = "",
    offset: int = 0,
    limit: int = _LIMIT,
) -> dict[str, Any]:
    """Its outline, and the text that was asked for."""
    page = await gotten(
        means.client,
        url,
        headers=asking.headers(means, {}, Accept=_ACCEPT),
        seconds=asking.seconds(call),
    )
    title, text, every = await _read(means, call, page)
    chosen, note = _chosen(every, text, url, section=section, query=query, limit=limit)
    told = "\n\n".join(text[one.start : one.end].strip() for one in chosen).strip()
    result: dict[str, Any] = {
        "url": page.url,
        "title": title,
        "text": told[offset : offset + limit],
        "sections": [one.heading for one in chosen if one.heading][:_MOST_TOLD],
        "outline": [
            {"heading": one.heading, "level": one.level, "anchor": one.anchor}
            for one in every
            if one.level
        ][:_MOST_TOLD],
        "length": len(told),
        "next": offset + limit if offset + limit < len(told) else None,
        "cut": page.is_cut,
        "fetched_at": page.fetched_at,
    }
    return result | ({"note": note} if note else {})


async def _read(means: Means, call: Call, page: Fetched) -> tuple[str, str, list[Section]]:
    if not 200 <= page.status < 300:
        raise ToolError(
            f"The server answered {page.status}: there is no page to read. Look at the address, or "
            "search for the page with web_search.",
            retryable=page.status >= 500,
            status=page.status,
        )
    kind, text, _ = shown(page)
    if kind == "html":
        read = await read_page(means, call, text, page.url, navigation=False, plain=False)
        return read["title"], read["text"], sections(read["text"], read["headings"])
    if kind != "text":
        raise ToolError(
            f"That is no page of text but {page.media_type or kind}. Fetch it with http_get, or "
            "give the address of a page."
        )
    plain = clean(text)
    headings = headings_of(plain)
    return headings[0]["text"] if headings else "", plain, sections(plain, headings)


def _chosen(
    every: list[Section], text: str, url: str, *, section: str, query: str, limit: int
) -> tuple[list[Section], str]:
    """What is asked for by name, then by words, then by the address; else everything."""
    if section:
        chosen = named(every, section)
        if not chosen:
            known = ", ".join(one.heading for one in every if one.level)[:2_000]
            raise ToolError(
                f"The page has no section {section[:100]!r}. It has: {known or 'none'}."
            )
        every = chosen
    if query:
        chosen = about(every, text, query, limit)
        return chosen, "" if chosen else "No section has these words; `outline` has them all."
    fragment = unquote(url.partition("#")[2])
    if fragment and not section:
        chosen = named(every, fragment)
        return chosen or every, "" if chosen else "The page has no section of the address's name."
    return every, ""
