"""What the documentation tells to paste into a shell is answered."""

import re
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.server.serving import Serving

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "connect-an-mcp-client.md"


@pytest.mark.req("V1")
def test_the_call_by_hand_of_the_page_is_answered(tmp_path: Path) -> None:
    [written] = re.findall(r"(?s)```text\n(curl .*?)```", PAGE.read_text("utf-8"))
    with Serving(tmp_path) as server:
        command = written.replace("http://127.0.0.1:8700", f"http://127.0.0.1:{server.port}")
        key = server.greeting["keys"]["agent"]
        told = [_run(command, one) for one in (key, "tg_agent_nobody")]
    assert told[0]["result"]["structuredContent"] == {"text": "hello"}
    assert told[1]["error"]["data"]["code"] == "unauthenticated", "it is the key that opens"


def _run(command: str, key: str) -> dict[str, Any]:
    ran = subprocess.run(
        ["sh", "-c", command],
        env={"KEY": key, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    return orjson.loads(ran.stdout)
