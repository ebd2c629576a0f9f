"""Brave's search API, or another that answers as it does."""

from typing import Any, cast
from urllib.parse import urlencode

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.web import asking, service
from toolgate.tools.web.engines.hit import Hit, Question, hit, unmarked

NAME = "Brave"
_URL = "https://api.search.brave.com/res/v1/web/search"
_FRESH = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


async def search(means: Means, call: Call, question: Question) -> list[Hit | None]:
    """What it found, in its order."""
    own = means.settings.web.search_url
    asked = {"q": question.words, "count": str(question.limit)}
    if question.language:
        asked["search_lang"] = question.language
    if question.recency != "any":
        asked["freshness"] = _FRESH[question.recency]
    url = own or _URL
    answer = await service.asked(
        service.client_of(means, own),
        NAME,
        f"{url}?{urlencode(asked)}",
        headers=asking.headers(means, {}, Accept="application/json"),
        seconds=asking.seconds(call),
        credentials=service.credentials(means, url, "X-Subscription-Token"),
    )
    service.refuse(NAME, answer)
    web = service.json_of(NAME, answer).get("web", {"results": []})
    listed = cast("dict[str, Any]", web).get("results") if isinstance(web, dict) else None
    found = service.objects(NAME, listed)
    return [
        hit(unmarked(one.get("title")), one.get("url"), unmarked(one.get("description")))
        for one in found
    ]
