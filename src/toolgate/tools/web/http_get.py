"""`http_get`: what an address of the web answers."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.web import asking
from toolgate.tools.web.answer import LIMIT, Format, told
from toolgate.tools.web.fetching import REDIRECTS, SECONDS, gotten

_ACCEPT = "text/html, application/xhtml+xml, application/json, text/*;q=0.9, */*;q=0.5"


async def http_get(  # noqa: PLR0913  as its schema says
    means: Means,
    call: Call,
    *,
    url: str,
    format: Format = "markdown",  # noqa: A002  the schema's name
    headers: dict[str, str] | None = None,
    navigation: bool = False,
    offset: int = 0,
    limit: int = LIMIT,
    redirects: int = REDIRECTS,
    timeout: float = SECONDS,  # noqa: ASYNC109  a bound for the far side
) -> dict[str, Any]:
    """Any answer is a result; without one it fails."""
    page = await gotten(
        means.client,
        url,
        headers=asking.headers(means, headers or {}, Accept=_ACCEPT),
        seconds=asking.seconds(call, timeout),
        redirects=redirects,
    )
    return await told(
        means, call, page, format=format, navigation=navigation, offset=offset, limit=limit
    )
