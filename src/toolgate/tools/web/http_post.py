"""`http_post`: send data to an address of the web. It is sent once, and nowhere else."""

from typing import Any
from urllib.parse import urlencode

import orjson

from toolgate.call import Call
from toolgate.errors import ExecutionFailed, TimedOut, ToolError
from toolgate.net.errors import Late, Lost, NotSent
from toolgate.net.redirect import Request
from toolgate.tools.means import Means
from toolgate.tools.web import asking
from toolgate.tools.web.answer import LIMIT, Format, told
from toolgate.tools.web.fetching import SECONDS, Fetched, fetched, unanswered, written

_ACCEPT = "application/json, text/*;q=0.9, */*;q=0.5"
_MAYBE = "It may have taken effect: check before you call it again."


async def http_post(  # noqa: PLR0913  as its schema says
    means: Means,
    call: Call,
    *,
    url: str,
    json: Any = None,
    form: dict[str, str] | None = None,
    text: str | None = None,
    headers: dict[str, str] | None = None,
    format: Format = "markdown",  # noqa: A002  the schema's name
    limit: int = LIMIT,
    timeout: float = SECONDS,  # noqa: ASYNC109  a bound for the far side
) -> dict[str, Any]:
    """Any answer is a result. Redirects are not followed: the data is for this address."""
    body, kind = _body({"json": json, "form": form, "text": text})
    asked = asking.headers(
        means,
        headers or {},
        Accept=_ACCEPT,
        Content_Type=kind,
        Idempotency_Key=call.downstream_key,
    )
    seconds = asking.seconds(call, timeout)
    page = await _sent(means, Request("POST", written(url), asked, body, ()), seconds)
    return await told(means, call, page, format=format, limit=limit)


def _body(parts: dict[str, Any]) -> tuple[bytes, str]:
    """What is sent, and its media type."""
    given = {name: value for name, value in parts.items() if value is not None}
    if len(given) > 1:
        raise ToolError(f"Give one of {' and '.join(given)}: a request has one body.")
    try:
        if "json" in given:
            return orjson.dumps(given["json"]), "application/json"
        if "form" in given:
            return urlencode(given["form"]).encode(), "application/x-www-form-urlencoded"
        return given.get("text", "").encode(), "text/plain; charset=utf-8" if given else ""
    except (UnicodeEncodeError, orjson.JSONEncodeError):
        raise ToolError("The body holds half a character; leave it out.") from None


async def _sent(means: Means, request: Request, seconds: float) -> Fetched:
    try:
        return await fetched(means.client, request, seconds=seconds, redirects=0)
    except NotSent as error:
        raise unanswered(error) from None
    except Late as error:
        raise TimedOut(f"{error.message} {_MAYBE}") from None
    except Lost as error:
        raise ExecutionFailed(f"{error.message} {_MAYBE}") from None
