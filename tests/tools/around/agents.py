"""Other agents to talk to and to hand tasks to, and canvases that people have edited."""

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.tools import agents_api

_NODE = {"id": "a", "type": "text", "x": 0, "y": 0, "width": 200, "height": 80, "text": "A"}


async def prepare(root: Path, settings: dict[str, Any], stack: AsyncExitStack) -> dict[str, str]:
    """Subordinates by HTTP and by a function; what speaks A2A is at a named address."""
    api = await stack.enter_async_context(agents_api.serving())
    names = ("researcher", "plain", "broken", "busy")
    subordinates = {name: {"url": f"{api.url}/subordinates/{name}"} for name in names}
    settings["tools"]["agent"] = {
        "subordinates": {
            **subordinates,
            "keyed": {"url": f"{api.url}/subordinates/keyed", "key_env": "TOOLGATE_TEST_NO_KEY"},
            "gone": {"url": "http://127.0.0.1:9/gone"},
            "helper": {"callback": "tests.tools.callbacks:echoed"},
            "missing": {"callback": "tests.tools.callbacks:no_such"},
        },
        "peers": {"local": {"url": api.url}},
        "seconds": 20,
    }
    folder = root / "files" / "canvases"
    folder.mkdir()
    canvas = {"nodes": [_NODE], "edges": []}
    (folder / "plan.canvas").write_text(json.dumps(canvas), "utf-8")
    (folder / "broken.canvas").write_text('{"nodes": [', "utf-8")
    (folder / "list.canvas").write_text("[1, 2]", "utf-8")
    return {"https://agents.example.com": api.url, "huge": "words and more words " * 5_000}
