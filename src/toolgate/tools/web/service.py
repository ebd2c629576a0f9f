"""A service that an operator has chosen: what it answers, as JSON or as text, or why not."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

from toolgate.errors import ProviderUnavailable, ToolError
from toolgate.net.client import HttpClient
from toolgate.net.credential import Credential
from toolgate.net.errors import Lost, NotSent
from toolgate.net.redirect import Request
from toolgate.tools.means import Means
from toolgate.tools.web.charset import decoded
from toolgate.tools.web.fetching import Fetched, fetched

_BUSY = frozenset({408, 425, 429})
_REFUSED = frozenset({401, 403, 407})
_BROKEN = 500
_LONGEST = 3_600


def client_of(means: Means, url: str) -> HttpClient:
    """One that reaches what an operator has named; where nobody has, only what is public."""
    return means.client.named(url) if url else means.client


def credentials(means: Means, url: str, key: str, form: str = "{}") -> tuple[Credential, ...]:
    """The key of who searches, which goes to its host only."""
    name = means.settings.web.key_env
    if not name:
        return ()
    secret = means.environment.get(name, "")
    if not secret:
        raise ProviderUnavailable(
            f"The variable {name} is empty: the operator sets it to the key of the search service. "
            "Nothing was sent."
        )
    host = urlsplit(url).hostname or ""
    return (Credential("tools.web", form.format(secret), (host,), key=key),)


async def asked(
    client: HttpClient,
    name: str,
    url: str,
    *,
    headers: Mapping[str, str],
    seconds: float,
    credentials: tuple[Credential, ...] = (),
) -> Fetched:
    """Its answer, whatever it says. Its address is the operator's, and nothing to tell."""
    try:
        return await fetched(
            client, Request("GET", url, headers, None, credentials), seconds=seconds
        )
    except (NotSent, Lost):
        raise ProviderUnavailable(
            f"{name} cannot be reached, or did not answer in time. Try again later; if it stays "
            "so, the operator looks at [tools.web]."
        ) from None


def refuse(name: str, answer: Fetched) -> None:
    """Raise what a status that says no means."""
    status = answer.status
    if 200 <= status < 300:
        return
    if status in _BUSY:
        said = answer.headers.get("Retry-After", "")
        wait = min(int(said[:6]), _LONGEST) if said.isascii() and said.isdecimal() else 10
        raise ToolError(f"{name} wants fewer questions ({status}).", retry_after=wait)
    if status in _REFUSED:
        raise ToolError(
            f"{name} refuses to answer ({status}). The operator looks at [tools.web]: the key, or "
            "whether the service gives JSON."
        )
    if status >= _BROKEN:
        raise ToolError(f"{name} is broken just now ({status}). Try again later.", retryable=True)
    raise ToolError(f"{name} does not take this question ({status}). Put it in other words.")


def json_of(name: str, answer: Fetched) -> dict[str, Any]:
    """The object that it answered with."""
    try:
        found = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise odd(name)
    return cast("dict[str, Any]", found)


def objects(name: str, listed: Any) -> list[dict[str, Any]]:
    """The objects of a list in its answer."""
    if not isinstance(listed, list):
        raise odd(name)
    return [one for one in cast("list[Any]", listed) if isinstance(one, dict)]


def text_of(name: str, answer: Fetched) -> str:
    """The text that it answered with."""
    found = decoded(answer.body, answer.content_type)
    if found is None:
        raise odd(name)
    return found[0]


def odd(name: str) -> ToolError:
    """It is not what we know."""
    return ToolError(
        f"{name} answered with something that cannot be read. The operator looks at [tools.web]."
    )
