"""A tool that blocks the loop is named in the log, and what waited for it goes on."""

import asyncio
import threading
from pathlib import Path

import pytest

from tests.house import until
from tests.server.serving import Answer, Serving
from toolgate.server.alarm import Alarm

MODULE = '''\
"""A tool that blocks the loop until a file appears."""

import time
from pathlib import Path


async def hog(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.01)
    return "done"
'''
TOOLS = """\
tools:
  - name: hog
    config: {module: hogging, function: hog}
    effect: pure
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
"""


@pytest.mark.req("X4")
async def test_a_tool_that_blocks_the_loop_is_named_and_the_server_recovers(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "hog.yaml").write_text(TOOLS, "utf-8")
    (tmp_path / "hogging.py").write_text(MODULE, "utf-8")
    go, answers = tmp_path / "go", list[Answer]()
    with Serving(tmp_path) as server:
        key = server.greeting["keys"]["agent"]
        caller = threading.Thread(
            target=lambda: answers.append(server.call("hog", {"path": str(go)}, key=key))
        )
        caller.start()
        await until(lambda: "holds up every call" in server.log)
        assert "hogging.hog, line " in server.log
        assert str(tmp_path) not in server.log
        go.touch()
        caller.join(30)
        assert server.get("/healthz").status == 200
        await until(lambda: "the loop goes on after" in server.log)
    assert answers[0].body["data"] == "done"


async def test_a_loop_that_comes_round_raises_no_alarm(caplog: pytest.LogCaptureFixture) -> None:
    with Alarm(after=0.5):
        for _ in range(60):
            await asyncio.sleep(0.01)
    await until(lambda: not any(one.name == "toolgate-alarm" for one in threading.enumerate()))
    assert caplog.text == ""
