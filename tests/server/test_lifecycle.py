"""A server from its first start to its end: keys once, a clear word, nothing lost at the end."""

import socket
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from tests.house import STORE, until
from tests.server.serving import COMMAND, Answer, Serving

MODULE = '''\
"""A tool that ends when a file appears."""

import asyncio
from pathlib import Path


async def wait_for(path: str) -> str:
    while not Path(path).exists():
        await asyncio.sleep(0.01)
    return "done"


def wait_in_a_thread(path: str) -> str:
    import time

    while not Path(path).exists():
        time.sleep(0.01)
    return "done"
'''
STARTING = '''\
"""A tool that starts a process, which looks for whatever it could take requests from."""

import asyncio
import sys

LOOK = """
import os, socket
for number in map(int, os.listdir("/dev/fd")):
    try:
        one = socket.socket(fileno=os.dup(number))
        if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            print(number)
    except OSError:
        pass
"""


async def start() -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LOOK, stdout=asyncio.subprocess.PIPE
    )
    return (await process.communicate())[0].decode()
'''
TOOLS = """\
tools:
  - name: wait_for
    config: {module: waiting_tools, function: wait_for}
    effect: irreversible
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
  - name: wait_in_a_thread
    config: {module: waiting_tools, function: wait_in_a_thread}
    effect: irreversible
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
"""


def recorded(root: Path, state: str) -> int:
    with closing(sqlite3.connect(root / STORE)) as connection:
        question = "SELECT count(*) FROM tool_execution_log WHERE state = ?"
        return connection.execute(question, (state,)).fetchone()[0]


@pytest.mark.req("V2", "V3")
def test_keys_are_shown_at_the_first_start_and_never_again(tmp_path: Path) -> None:
    with Serving(tmp_path) as server:
        keys = server.greeting["keys"]
        assert keys["admin"].startswith("tg_admin_")
        assert keys["agent"].startswith("tg_agent_")
        answer = server.call("echo", {"text": "hello"}, key=keys["agent"])
        assert answer.body["data"] == {"text": "hello"}
        assert server.get("/v1/tools/echo/explain", keys["admin"]).body["allowed"] is True
        assert keys["admin"] not in server.log
        assert server.stop() == 0
    with Serving(tmp_path) as server:
        assert server.greeting["keys"] is None
        assert server.call("echo", {"text": "again"}, key=keys["agent"]).status == 200
    for file in (tmp_path / STORE).parent.iterdir():
        content = file.read_bytes()
        assert keys["admin"].encode() not in content
        assert keys["agent"].encode() not in content


@pytest.mark.req("S3")
async def test_a_server_that_is_told_to_stop_finishes_what_it_began(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "waiting.yaml").write_text(TOOLS, "utf-8")
    (tmp_path / "waiting_tools.py").write_text(MODULE, "utf-8")
    go = tmp_path / "go"
    answers: list[Answer] = []
    with Serving(tmp_path) as server:
        key = server.greeting["keys"]["agent"]

        def call(tool: str) -> None:
            answers.append(server.call(tool, {"path": str(go)}, key=key))

        names = ["wait_for", "wait_in_a_thread"] * 10
        callers = [threading.Thread(target=call, args=(name,)) for name in names]
        for caller in callers:
            caller.start()
        await until(lambda: recorded(tmp_path, "started") == len(callers))
        server.process.terminate()
        # It has heard the signal when it takes no more connections.
        await until(lambda: not _listens(server.port))
        # That it stays can only be seen by giving it the time to go.
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.5)
        assert answers == []
        go.touch()
        for caller in callers:
            caller.join(30)
        assert server.process.wait(40) == 0
    assert [(answer.status, answer.body["data"]) for answer in answers] == [(200, "done")] * 20
    assert (recorded(tmp_path, "succeeded"), recorded(tmp_path, "started")) == (20, 0)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def takes_nothing(server: Serving) -> socket.socket:
    """Who asks for more than the system keeps for them, and reads nothing."""
    key = server.greeting["keys"]["agent"]
    asked = f"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(asked.encode() * 60)
    return connection


@pytest.mark.req("S3")
@pytest.mark.parametrize("signals", [1, 2])
async def test_who_takes_no_answer_does_not_delay_the_end(tmp_path: Path, signals: int) -> None:
    drain = 1 if signals == 1 else 600
    (tmp_path / "toolgate.toml").write_text(f"[server]\ndrain = {drain}\n", "utf-8")
    with Serving(tmp_path) as server, closing(takes_nothing(server)):
        server.process.terminate()
        await until(lambda: not _listens(server.port))
        if signals == 2:
            server.process.terminate()
        assert server.process.wait(20) == 0
        assert server.log == ""


def test_who_takes_no_answer_would_delay_the_end_without_the_guard(tmp_path: Path) -> None:
    (tmp_path / "toolgate.toml").write_text("[server]\ndrain = 1\n", "utf-8")
    unhurried = "from toolgate.server import limits\n"
    unhurried += "limits.LimitedProtocol.hurry = lambda self: None\n"
    with Serving(tmp_path, before=unhurried) as server:
        with closing(takes_nothing(server)):
            server.process.terminate()
            with pytest.raises(subprocess.TimeoutExpired):
                server.process.wait(5)
        server.process.wait(20)


@pytest.mark.req("S3")
def test_a_connection_that_asks_for_nothing_does_not_delay_the_end(tmp_path: Path) -> None:
    (tmp_path / "toolgate.toml").write_text("[server]\ndrain = 600\n", "utf-8")
    with (
        Serving(tmp_path) as server,
        closing(socket.create_connection(("127.0.0.1", server.port), timeout=20)) as connection,
    ):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        server.process.terminate()
        assert server.process.wait(20) == 0


@pytest.mark.req("S3", "O2")
def test_pure_calls_are_on_record_after_the_end(tmp_path: Path) -> None:
    with Serving(tmp_path) as server:
        key = server.greeting["keys"]["agent"]
        for _ in range(5):
            assert server.call("echo", {"text": "x"}, key=key).status == 200
        assert server.stop() == 0
    with closing(sqlite3.connect(tmp_path / STORE)) as connection:
        assert connection.execute("SELECT sum(calls) FROM call_pages").fetchone()[0] == 5


def test_a_port_that_is_taken_is_told_and_ends_with_one(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for more in ([], ["--json"]):
            ended = subprocess.run(
                [*COMMAND, "serve", "--port", str(port), *more],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=50,
                check=False,
            )
            assert ended.returncode == 1
            told = ended.stdout if more else ended.stderr
            assert f"Cannot listen on 127.0.0.1:{port}" in told
            assert "toolgate serve --port 0" in told
            assert "Traceback" not in ended.stderr
            if more:
                assert orjson.loads(ended.stdout)["error"]["code"] == "address_in_use"


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_gets_other_advice(tmp_path: Path, host: str) -> None:
    settings = f'[server]\nhost = "{host}"\npublic_url = "http://tools.example"\n'
    (tmp_path / "toolgate.toml").write_text(settings, "utf-8")
    ended = subprocess.run(
        [*COMMAND, "serve"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"address_not_available: Cannot listen on {host}:8700 (")
    assert "set [server] host" in ended.stderr
    assert "Stop what uses it" not in ended.stderr


def test_a_source_that_does_not_answer_is_warned_of_at_the_start(tmp_path: Path) -> None:
    settings = '[tools]\nurls = ["http://127.0.0.1:1/tools.json"]\n'
    (tmp_path / "toolgate.toml").write_text(settings, "utf-8")
    with Serving(tmp_path) as server:
        [warning] = server.log.splitlines()
        assert warning.startswith("warning: source http://127.0.0.1:1/tools.json is unhealthy")
        assert server.get("/readyz").status == 503


def test_two_servers_on_one_port_cannot_both_start(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Serving(tmp_path / "one") as server:
        ended = subprocess.run(
            [*COMMAND, "serve", "--port", str(server.port)],
            cwd=tmp_path / "two",
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert (ended.returncode, "Cannot listen" in ended.stderr) == (1, True)
        assert server.get("/healthz").status == 200
    assert not (tmp_path / "two" / ".toolgate").exists(), "nothing was made for a start that failed"


@pytest.mark.parametrize("more", [(), ("--reload",)])
def test_what_a_tool_starts_cannot_take_the_servers_requests(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    (tmp_path / "tools").mkdir()
    tool = "tools: [{name: start, effect: pure, config: {module: starting, function: start}}]"
    (tmp_path / "tools" / "starting.yaml").write_text(tool, "utf-8")
    (tmp_path / "starting.py").write_text(STARTING, "utf-8")
    with Serving(tmp_path, *more) as server:
        answer = server.call("start", key=server.greeting["keys"]["agent"])
    assert answer.body["data"] == ""


def test_a_server_on_an_ipv6_address_says_where_it_is(tmp_path: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("skipped: no IPv6 here")
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("skipped: no IPv6 loopback here")
    (tmp_path / "toolgate.toml").write_text('[server]\nhost = "::1"\n', "utf-8")
    with Serving(tmp_path) as server:
        assert server.greeting["url"] == f"http://[::1]:{server.port}"
