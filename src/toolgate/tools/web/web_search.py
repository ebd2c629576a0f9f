"""`web_search`: pages about something, by whoever an operator has search."""

from collections.abc import Awaitable, Callable
from typing import Any

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ProviderUnavailable, ToolError
from toolgate.tools.means import Means
from toolgate.tools.web.engines import brave, duckduckgo, searxng
from toolgate.tools.web.engines.hit import Hit, Question, Recency

_LIMIT = 8
_ENGINES: dict[str, Callable[[Means, Call, Question], Awaitable[list[Hit | None]]]] = {
    "duckduckgo": duckduckgo.search,
    "searxng": searxng.search,
    "brave": brave.search,
}


async def web_search(
    means: Means,
    call: Call,
    *,
    query: str,
    limit: int = _LIMIT,
    recency: Recency = "any",
    language: str = "",
) -> dict[str, Any]:
    """Titles, addresses and some words of pages; the same page once."""
    words = " ".join(query.split())
    if not words or len(words) > 400:
        raise ToolError("Say what to search for, in 1 to 400 characters.")
    name = means.settings.web.search
    if name not in _ENGINES:
        raise ProviderUnavailable("Nobody searches here: an operator chooses [tools.web] search.")
    try:
        words.encode()
    except UnicodeEncodeError:
        raise ToolError("The query holds half a character; leave it out.") from None
    found = await _ENGINES[name](means, call, Question(words, limit, recency, language))
    hits: dict[str, Hit] = {}
    for one in found:
        if one is not None:
            hits.setdefault(one.url, one)
    return {
        "query": words,
        "engine": name,
        "results": [one._asdict() for one in list(hits.values())[:limit]],
        "fetched_at": clock.utc_now().isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
