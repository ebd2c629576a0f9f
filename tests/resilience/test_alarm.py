"""A tool that blocks the loop is named in the log, and what waited for it goes on."""

import asyncio
import http.client
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import until
from tests.server.serving import Answer, Serving
from tests.servers.process import free_port
from toolgate.executor.trace.meter import Meter
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


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "hog.yaml").write_text(TOOLS, "utf-8")
    (tmp_path / "hogging.py").write_text(MODULE, "utf-8")
    return tmp_path


def hogged(server: Serving, go: Path) -> tuple[threading.Thread, list[Answer]]:
    """A call that blocks the loop, and where its answer will be."""
    answers, key = list[Answer](), server.greeting["keys"]["agent"]
    caller = threading.Thread(
        target=lambda: answers.append(server.call("hog", {"path": str(go)}, key=key))
    )
    caller.start()
    return caller, answers


@pytest.mark.req("X4")
async def test_a_tool_that_blocks_the_loop_is_named_and_the_server_recovers(yard: Path) -> None:
    go = yard / "go"
    with Serving(yard) as server:
        caller, answers = hogged(server, go)
        await until(lambda: "holds up every call" in server.log)
        assert "hog: hogging.hog, line " in server.log
        assert str(yard) not in server.log
        go.touch()
        caller.join(30)
        assert server.get("/healthz").status == 200
        await until(lambda: "the loop goes on after" in server.log)
        told = server.get("/metrics").text
        assert 'toolgate_loop_blocked_total{tool_name="hog"} 1' in told
    assert answers[0].body["data"] == "done"


@pytest.mark.req("X4")
async def test_a_server_is_alive_and_not_ready_while_a_tool_blocks_its_loop(yard: Path) -> None:
    go, port = yard / "go", free_port()
    with Serving(yard, "--health", f"127.0.0.1:{port}") as server:
        assert asked(port, "/healthz") == (200, {"status": "ok"})
        assert asked(port, "/readyz")[0] == 200
        caller, answers = hogged(server, go)
        await until(lambda: asked(port, "/healthz")[1]["status"] == "blocked")
        # The control: the server's own port says nothing at all meanwhile.
        with pytest.raises(TimeoutError):
            asked(server.port, "/healthz", patience=1)
        status, told = asked(port, "/healthz")
        assert status == 200
        assert told["blocked_s"] >= 1
        status, told = asked(port, "/readyz")
        assert (status, told["status"]) == (503, "blocked")
        go.touch()
        caller.join(30)
        await until(lambda: asked(port, "/healthz") == (200, {"status": "ok"}))
        assert asked(port, "/readyz")[0] == 200
    assert answers[0].body["data"] == "done"


async def test_a_loop_that_does_not_come_round_for_a_minute_is_not_alive(
    yard: Path,
) -> None:
    port = free_port()
    soon = "from toolgate.cli import health; health._STUCK_S = 1.5; "
    with Serving(yard, "--health", f"127.0.0.1:{port}", before=soon) as server:
        caller, _answers = hogged(server, yard / "go")
        await until(lambda: asked(port, "/healthz")[0] == 503)
        (yard / "go").touch()
        caller.join(30)
        await until(lambda: asked(port, "/healthz")[0] == 200)


def asked(port: int, path: str, patience: float = 10) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, orjson.loads(answer.read())
    finally:
        connection.close()


async def test_a_loop_that_comes_round_raises_no_alarm(caplog: pytest.LogCaptureFixture) -> None:
    with Alarm(Meter(), after=0.5):
        for _ in range(60):
            await asyncio.sleep(0.01)
    await until(lambda: not any(one.name == "toolgate-alarm" for one in threading.enumerate()))
    assert caplog.text == ""
