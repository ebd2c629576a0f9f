"""SearXNG, wherever an operator runs it; its settings have to allow the format `json`."""

from urllib.parse import urlencode

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.web import asking, service
from toolgate.tools.web.engines.hit import Hit, Question, hit

NAME = "SearXNG"


async def search(means: Means, call: Call, question: Question) -> list[Hit | None]:
    """What it found, in its order."""
    base = means.settings.web.search_url
    asked = {"q": question.words, "format": "json", "pageno": "1"}
    if question.language:
        asked["language"] = question.language
    if question.recency != "any":
        asked["time_range"] = question.recency
    path = "" if base.endswith("/search") else "/search"
    answer = await service.asked(
        service.client_of(means, base),
        NAME,
        f"{base}{path}?{urlencode(asked)}",
        headers=asking.headers(means, {}, Accept="application/json"),
        seconds=asking.seconds(call),
        credentials=service.credentials(means, base, "Authorization", "Bearer {}"),
    )
    service.refuse(NAME, answer)
    found = service.objects(NAME, service.json_of(NAME, answer).get("results"))
    return [hit(one.get("title"), one.get("url"), one.get("content")) for one in found]
