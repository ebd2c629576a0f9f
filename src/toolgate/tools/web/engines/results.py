"""DuckDuckGo's result pages, read. It runs in a worker."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

_MOST = 100
_DOUBT = ".anomaly-modal__title, .anomaly-modal__mask, #challenge-form, form[action*=anomaly]"
_PAGE = "#links, .results, .serp__results, form[action*=lite], form[action*=html], .no-results"


def results(*, html: str) -> dict[str, Any]:
    """Hits in their order; whether it is such a page at all; whether it asks for a person."""
    tree = LexborHTMLParser(html)
    hits = _usual(tree) or _light(tree)
    return {
        "hits": hits[:_MOST],
        "is_known": bool(hits) or tree.css_first(_PAGE) is not None,
        "is_doubted": not hits and tree.css_first(_DOUBT) is not None,
    }


def _usual(tree: LexborHTMLParser) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for one in tree.css("div.result"):
        link = one.css_first("a.result__a")
        if "result--ad" in (one.attributes.get("class") or "") or link is None:
            continue
        found += _hit(link, one.css_first(".result__snippet"))
    return found


def _light(tree: LexborHTMLParser) -> list[dict[str, str]]:
    """A table: a row with the link, one with the words, one with the address."""
    found: list[dict[str, str]] = []
    link: LexborNode | None = None
    for row in tree.css("tr"):
        if "result-sponsored" in (row.attributes.get("class") or ""):
            link = None
            continue
        link = row.css_first("a.result-link") or link
        words = row.css_first("td.result-snippet")
        if link is not None and words is not None:
            found += _hit(link, words)
            link = None
    return found


def _hit(link: LexborNode, words: LexborNode | None) -> list[dict[str, str]]:
    url = _led(link.attributes.get("href") or "")
    if not url:
        return []
    return [{"title": link.text(), "url": url, "snippet": words.text() if words else ""}]


def _led(href: str) -> str:
    """Its links lead through its own host, which notes the click; paid ones by another path."""
    url = f"https:{href}" if href.startswith("//") else href
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.path == "/l/":
        return parse_qs(parts.query).get("uddg", [""])[0]
    return "" if parts.path == "/y.js" else url
