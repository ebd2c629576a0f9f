"""`fetch_wikipedia`: what an encyclopedia says of something, in short or whole."""

import re
from typing import Any, cast
from urllib.parse import quote, urlencode

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.web import asking, service
from toolgate.tools.web.fetching import Fetched
from toolgate.tools.web.invisible import clean

_URL = "https://{language}.wikipedia.org"
_LIMIT = 20_000
_MISSING = 404
_MOST_OTHERS = 5
_HEADING = re.compile(r"(?m)^(={2,6}+)([^\n]+)$")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,12}){0,3}\Z")


class _Wiki:
    """One language of it: MediaWiki's summaries, and its API for the rest."""

    def __init__(self, means: Means, call: Call, language: str) -> None:
        own = means.settings.web.wikipedia_url
        self._base = (own or _URL).replace("{language}", language)
        self._client = service.client_of(means, self._base if own else "")
        self._headers = asking.headers(means, {}, Accept="application/json")
        self._call = call
        self.name = "The wiki" if own else "Wikipedia"

    async def summary(self, title: str) -> tuple[dict[str, Any], Fetched] | None:
        """The article of that title; nothing where there is none."""
        path = quote(title.replace(" ", "_"), safe="")
        answer = await self._asked(f"/api/rest_v1/page/summary/{path}?redirect=true")
        if answer.status == _MISSING:
            return None
        service.refuse(self.name, answer)
        return service.json_of(self.name, answer), answer

    async def titles(self, words: str) -> list[str]:
        """Those of articles that have these words, the best first."""
        told = await self._query(
            list="search", srsearch=words, srlimit=str(_MOST_OTHERS + 1), srprop=""
        )
        listed = told.get("search")
        found = cast("list[Any]", listed) if isinstance(listed, list) else []
        named = [cast("dict[str, Any]", one).get("title") for one in found if isinstance(one, dict)]
        return [one for one in named if isinstance(one, str)]

    async def article(self, title: str) -> str:
        """All of its text, with Markdown's headings."""
        told = await self._query(
            prop="extracts", explaintext="1", exsectionformat="wiki", redirects="1", titles=title
        )
        pages = told.get("pages")
        first = cast("list[Any]", pages)[0] if isinstance(pages, list) and pages else None
        text = cast("dict[str, Any]", first).get("extract") if isinstance(first, dict) else None
        if not isinstance(text, str):
            raise service.odd(self.name)
        return _HEADING.sub(_marked, text)

    async def _query(self, **asked: str) -> dict[str, Any]:
        said = {"action": "query", "format": "json", "formatversion": "2", **asked}
        answer = await self._asked(f"/w/api.php?{urlencode(said)}")
        service.refuse(self.name, answer)
        told = service.json_of(self.name, answer).get("query", {})
        return cast("dict[str, Any]", told) if isinstance(told, dict) else {}

    async def _asked(self, path: str) -> Fetched:
        return await service.asked(
            self._client,
            self.name,
            self._base + path,
            headers=self._headers,
            seconds=asking.seconds(self._call),
        )


async def fetch_wikipedia(
    means: Means,
    call: Call,
    *,
    title: str,
    language: str = "en",
    full: bool = False,
    offset: int = 0,
    limit: int = _LIMIT,
) -> dict[str, Any]:
    """The article of that title, else the one that fits best, and others that it could be."""
    wanted = _title(title)
    if not _LANGUAGE.match(language):
        raise ToolError("The language is a code of Wikipedia's, such as en, de or zh-min-nan.")
    wiki = _Wiki(means, call, language)
    found, others = await wiki.summary(wanted), list[str]()
    if found is None:
        others = await wiki.titles(wanted)
        found = await wiki.summary(others[0]) if others else None
    if found is None:
        raise ToolError(
            f"There is no article about {wanted[:100]!r}, and none that is like it. Try other "
            "words, or another language."
        )
    told, answer = found
    name = str(told.get("title") or wanted)
    is_many = told.get("type") == "disambiguation"
    if is_many and not others:
        others = await wiki.titles(wanted)
    text = await wiki.article(name) if full else str(told.get("extract") or "")
    text = clean(text).strip()
    return {
        "title": name,
        "description": str(told.get("description") or ""),
        "kind": "disambiguation" if is_many else "article" if full else "summary",
        "text": text[offset : offset + limit],
        "length": len(text),
        "next": offset + limit if offset + limit < len(text) else None,
        "alternatives": [one for one in others if one != name][:_MOST_OTHERS],
        "language": language,
        "url": _page_of(told) or answer.url,
        "updated_at": str(told.get("timestamp") or ""),
        "fetched_at": answer.fetched_at,
    }


def _marked(found: re.Match[str]) -> str:
    """Markdown's heading for a wiki's, where it is closed as it was opened."""
    signs, rest = found[1], found[2].rstrip(" ")
    text = rest.removesuffix(signs).strip(" ")
    return f"{'#' * len(signs)} {text}" if rest.endswith(signs) and text else found[0]


def _title(given: str) -> str:
    title = " ".join(given.replace("_", " ").split())
    if not title.strip("./") or len(title) > 250 or set(title) & set("#<>[]|{}\x7f\ufffd"):
        raise ToolError(
            "That can be no title of an article: give its name in up to 250 characters, without "
            "# < > [ ] | { }."
        )
    try:
        title.encode()
    except UnicodeEncodeError:
        raise ToolError("The title holds half a character; leave it out.") from None
    return title


def _page_of(told: dict[str, Any]) -> str:
    """Where readers find it."""
    place: Any = told
    for name in ("content_urls", "desktop", "page"):
        place = cast("dict[str, Any]", place).get(name) if isinstance(place, dict) else None
    return place if isinstance(place, str) and place.startswith(("https://", "http://")) else ""
