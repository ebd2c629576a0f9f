"""An MCP server that fetches addresses, with nothing but what Python brings; run in a sandbox."""

import json
import os
import sys
import urllib.request
from typing import Any


def _fetched(url: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            text, failed = answer.read().decode(), False
    except OSError as error:
        text, failed = str(error), True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        named = {"name": "fetching", "version": "1"}
        agreed = params["protocolVersion"]
        return {"protocolVersion": agreed, "capabilities": {"tools": {}}, "serverInfo": named}
    if method == "tools/list":
        return {"tools": [{"name": "fetch", "inputSchema": {"type": "object"}}]}
    return _fetched(params["arguments"]["url"])


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        answer["result"] = _result(asked["method"], asked.get("params", {}))
        os.write(1, json.dumps(answer).encode() + b"\n")
