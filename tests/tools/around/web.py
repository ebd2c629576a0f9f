"""The world that tools look things up in: `https://example.com` is a server of the tests."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.tools.world import world


async def prepare(_root: Path, settings: dict[str, Any], stack: AsyncExitStack) -> dict[str, str]:
    """It is let out, and stands for the search engine and the wiki, too."""
    there = await stack.enter_async_context(world())
    net = settings.setdefault("net", {})
    net["allow"] = [*net.get("allow", ()), there.url.removeprefix("http://")]
    settings["tools"]["web"] = {
        "search": "duckduckgo",
        "search_url": f"{there.url}/html",
        "wikipedia_url": f"{there.url}/{{language}}",
    }
    return {"https://example.com": there.url}
