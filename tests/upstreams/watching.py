"""A program of the newer revision whose resources can be watched, by hand.

`resources/read` is answered with how often it was told what to tell, and in how many bytes. Once
`deaf` is read, it reads no more.
"""

import json
import sys
import time
from typing import Any

KNOWN: dict[str, Any] = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"resources": {"subscribe": True, "listChanged": True}},
    "serverInfo": {"name": "watching", "version": "1"},
    "resultType": "complete",
}


def main() -> None:
    count = size = 0
    for raw in sys.stdin:
        said = json.loads(raw)
        method = said.get("method")
        found: dict[str, Any] = {}
        if method == "server/discover":
            found = KNOWN
        elif method == "subscriptions/listen":
            count, size = count + 1, size + len(raw)
            continue
        elif method == "resources/read":
            found = {"contents": [], "count": count, "size": size}
        elif said.get("id") is None:
            continue
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": found}) + "\n")
        sys.stdout.flush()
        if method == "resources/read" and said["params"]["uri"] == "deaf":
            time.sleep(3600)


if __name__ == "__main__":
    main()
