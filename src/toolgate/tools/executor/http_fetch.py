"""Fetches an address, as `http_get` does; the agent system names it so."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.web.http_get import http_get


async def http_fetch(
    means: Means,
    call: Call,
    *,
    url: str,
    timeout: float = 10,  # noqa: ASYNC109  the seed's name
) -> dict[str, Any]:
    """What an address answers, pages as Markdown."""
    return await http_get(means, call, url=url, timeout=timeout)
