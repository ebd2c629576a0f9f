"""What `toolgate serve` prints can be pasted as it stands."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from tests.server.serving import COMMAND, Serving


@contextmanager
def greeted(root: Path, *more: str) -> Generator[str]:
    """What it printed, while it runs."""
    server = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *more], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        shown = ""
        for line in server.stdout:
            shown += line
            if "Ctrl-C" in line:
                break
        yield shown
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(40) == 0
        server.stdout.close()


def after(heading: str, shown: str) -> str:
    """The lines below a heading, up to the next empty one."""
    return shown.split(f"{heading}\n", 1)[1].split("\n\n", 1)[0]


def printed(command: list[str], typed: str = "") -> str:
    done = subprocess.run(
        command, input=typed, capture_output=True, text=True, timeout=50, check=True
    )
    return done.stdout


@pytest.mark.req("V2")
def test_what_the_greeting_shows_runs_when_it_is_pasted(tmp_path: Path) -> None:
    with greeted(tmp_path) as shown:
        assert shown.startswith("toolgate listens on http://127.0.0.1:")
        assert (shown.count("tg_admin_"), "\x1b[" in shown) == (1, False)
        listed = orjson.loads(printed(["sh", "-c", after("List what the agent may call:", shown)]))
        assert {"echo", "read_output", "timestamp"} <= {tool["name"] for tool in listed["tools"]}
        called = orjson.loads(printed(["sh", "-c", after("Call a tool:", shown)]))
        assert called["data"] == {"text": "hello"}
        program = shown.split("From Python:\n", 1)[1].split("\n\nStop with", 1)[0]
        assert printed([sys.executable, "-c", program]) == "{'text': 'hello'}\n"
        # Line by line, as an interpreter reads what is pasted.
        assert printed([sys.executable, "-i"], program + "\n") == "{'text': 'hello'}\n"
        place, header = after("Connect an MCP client:", shown).split("   with the header   ")
        told: dict[str, object] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {},
        }
        begin: dict[str, object] = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": told,
        }
        curl = ["curl", "-s", "-H", header, place, "-d", orjson.dumps(begin).decode()]
        assert orjson.loads(printed(curl))["result"]["serverInfo"]["name"] == "toolgate"


def test_where_probes_are_answered_is_told(tmp_path: Path) -> None:
    with greeted(tmp_path, "--health", "127.0.0.1:0") as shown:
        [line] = [one for one in shown.splitlines() if one.startswith("Probes are answered at ")]
        for place in line.removeprefix("Probes are answered at ").split(" and "):
            assert printed(["curl", "-sf", place])
    with Serving(tmp_path, "--health", "127.0.0.1:0") as server:
        assert str(server.greeting["health"]).startswith("http://127.0.0.1:")


def test_a_public_address_stands_beside_the_one_it_is_bound_to(tmp_path: Path) -> None:
    settings = '[server]\npublic_url = "https://tools.example"\n'
    (tmp_path / "toolgate.toml").write_text(settings, "utf-8")
    with greeted(tmp_path) as shown:
        first, second = shown.splitlines()[:2]
        assert first.startswith("toolgate listens on http://127.0.0.1:")
        assert second == "Callers use https://tools.example"
        assert "https://tools.example/v1/call" in shown
    with Serving(tmp_path) as server:
        assert server.greeting["url"] == "https://tools.example"
        assert server.greeting["bound"].startswith("http://127.0.0.1:")


def test_a_greeting_that_cannot_be_written_ends_the_server(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("skipped: no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [*COMMAND, "serve", "--port", "0"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
            check=False,
        )
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)
    assert "cannot be written" in ended.stderr
