"""Searches the web, as `web_search` does; the agent system names it so."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.web.web_search import web_search


async def search_engine(means: Means, call: Call, *, query: str) -> dict[str, Any]:
    """Pages about something."""
    return await web_search(means, call, query=query)
