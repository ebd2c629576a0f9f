"""DuckDuckGo's pages for browsers without scripts, which take no key: `/html/` and `/lite/`."""

from urllib.parse import urlencode

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.web import asking, service
from toolgate.tools.web.engines.hit import Hit, Question, hit
from toolgate.tools.web.fetching import seconds_left

NAME = "DuckDuckGo"
_URL = "https://html.duckduckgo.com/html"
_FRESH = {"day": "d", "week": "w", "month": "m", "year": "y"}
# Where a language is spoken, as it names regions.
_REGIONS = dict(
    zip(
        "en de fr es it nl pt pl ja ko zh ru sv da fi cs tr uk".split(),  # noqa: SIM905  a line of words
        "us-en de-de fr-fr es-es it-it nl-nl pt-pt pl-pl jp-jp kr-kr cn-zh ru-ru se-sv dk-da "  # noqa: SIM905  as above
        "fi-fi cz-cs tr-tr ua-uk".split(),
        strict=True,
    )
)
_READING = 10.0
# It says that to a program, and asks for a person.
_ACCEPTED = 202


async def search(means: Means, call: Call, question: Question) -> list[Hit | None]:
    """What it found, in its order, without advertisements."""
    own = means.settings.web.search_url
    asked = {"q": question.words}
    if question.language in _REGIONS:
        asked["kl"] = _REGIONS[question.language]
    if question.recency != "any":
        asked["df"] = _FRESH[question.recency]
    answer = await service.asked(
        service.client_of(means, own),
        NAME,
        f"{own or _URL}/?{urlencode(asked)}",
        headers=asking.headers(means, {}, Accept="text/html"),
        seconds=asking.seconds(call),
    )
    if answer.status == _ACCEPTED:
        raise _doubted()
    service.refuse(NAME, answer)
    read = await means.workers.run(
        "toolgate.tools.web.engines.results:results",
        {"html": service.text_of(NAME, answer)},
        seconds=seconds_left(call, _READING),
    )
    if read["is_doubted"]:
        raise _doubted()
    if not read["is_known"]:
        raise service.odd(NAME)
    return [hit(one["title"], one["url"], one["snippet"]) for one in read["hits"]]


def _doubted() -> ToolError:
    return ToolError(
        f"{NAME} wants to know whether a person searches, and does not answer programs just now. "
        "Try again in a few minutes; an operator can set [tools.web] search to searxng or brave.",
        retry_after=300,
    )
