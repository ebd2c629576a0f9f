"""`toolgate serve --reload` follows its files, and a broken one leaves what runs alone."""

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.server.serving import COMMAND, Serving

MODULE = '''\
"""What the tools of these tests do."""

import asyncio
from pathlib import Path


def word() -> str:
    return "first"


async def wait() -> str:
    Path("begun").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    return "waited"
'''
TOOLS = """\
tools:
  - {name: word, config: {module: words, function: word}, effect: pure}
  - {name: wait, config: {module: words, function: wait}, effect: irreversible}
"""
RULE = """\
package toolgate

restrict contains "nobody may" if input.tool.name == "nothing"
"""


@pytest.fixture
def server(tmp_path: Path) -> Generator[Serving]:
    with reloading(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    """For those that leave its files as they were."""
    with reloading(tmp_path_factory.mktemp("lasting")) as found:
        yield found


def reloading(root: Path) -> Serving:
    (root / "toolgate.toml").write_text("", "utf-8")
    (root / "tools").mkdir()
    (root / "policies").mkdir()
    (root / "tools" / "mine.yaml").write_text(TOOLS, "utf-8")
    (root / "policies" / "mine.rego").write_text(RULE, "utf-8")
    (root / "words.py").write_text(MODULE, "utf-8")
    return Serving(root, "--reload")


class Hand:
    """Changes files, and asks the server."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._before = len(server.log)
        self.key = server.greeting["keys"]["agent"]

    def write(self, name: str, text: str) -> None:
        (self._server.root / name).write_text(text, "utf-8")

    def call(self, tool: str, **args: str) -> Any:
        answer = self._server.call(tool, args, key=self.key)
        return answer.body.get("data") if answer.status == 200 else answer.body["code"]

    async def becomes(self, ask: Callable[[], Any], wanted: Any) -> None:
        def has_become() -> bool:
            # While one server takes the other's place, a connection may be cut.
            with contextlib.suppress(ConnectionError):
                return ask() == wanted
            return False

        await until(has_become)

    @property
    def log(self) -> str:
        """What it has said since."""
        return self._server.log[self._before :]

    async def hears(self, text: str) -> None:
        await until(lambda: text in self.log)


@pytest.mark.req("V5")
async def test_every_kind_of_file_counts_once_it_is_saved(server: Serving) -> None:
    hand = Hand(server)
    assert hand.call("word") == "first"
    hand.write("words.py", MODULE.replace("first", "second"))
    await hand.becomes(lambda: hand.call("word"), "second")
    await hand.hears("words.py changed: the server was started anew.")
    added = "  - {name: more, config: {module: words, function: word}, effect: pure}\n"
    hand.write("tools/mine.yaml", TOOLS + added)
    await hand.becomes(lambda: hand.call("more"), "second")
    assert hand.call("echo", text="hi") == {"text": "hi"}
    hand.write("policies/mine.rego", RULE.replace("nothing", "echo"))
    await hand.becomes(lambda: hand.call("echo", text="hi"), "tool_not_found")
    hand.write("toolgate.toml", '[tools]\nbuiltin = ["timestamp"]\n')
    await hand.hears("toolgate.toml changed: the server was started anew.")
    assert server.stop() == 0


@pytest.mark.req("V5")
@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("toolgate.toml", "[servr]\nport = 1\n", "toolgate.toml:1"),
        ("tools/mine.yaml", TOOLS + "  - {name: x, efect: pure}\n", "tools/mine.yaml:4"),
        ("policies/mine.rego", "package toolgate\n\ndeny contains if {\n", "mine.rego:3"),
        ("words.py", MODULE + "\n\ndef broken(:\n", "words.py:18: invalid syntax"),
        ("words.py", MODULE + "\n\nraise ValueError('no')\n", "words.py:18: ValueError: no"),
    ],
)
async def test_a_broken_file_is_told_and_what_runs_goes_on(
    lasting: Serving, file: str, text: str, told: str
) -> None:
    hand = Hand(lasting)
    whole = (lasting.root / file).read_text("utf-8")
    hand.write(file, text)
    await hand.hears(f"{file} changed, and the server goes on as it was: mend that and save.")
    assert told in hand.log
    assert "Traceback" not in hand.log
    assert hand.call("word") == "first"
    hand.write(file, whole)
    await hand.hears(f"{file} changed: the server was started anew.")
    assert hand.call("word") == "first"


@pytest.mark.req("V5", "S3")
async def test_what_has_begun_is_finished_by_the_server_that_began_it(server: Serving) -> None:
    hand = Hand(server)
    calling = asyncio.create_task(asyncio.to_thread(hand.call, "wait"))
    await until((server.root / "begun").exists)
    hand.write("words.py", MODULE.replace("first", "second").replace('"waited"', '"never"'))
    await hand.becomes(lambda: hand.call("word"), "second")
    assert not calling.done()
    hand.write("go", "")
    assert await calling == "waited"


@pytest.mark.req("V5")
async def test_nothing_is_left_when_whoever_watches_is_killed(server: Serving) -> None:
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()

    def answers() -> bool:
        try:
            return server.get("/healthz").status == 200
        except OSError:
            return False

    await until(lambda: not answers())


def test_a_start_that_fails_ends_with_one(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "mine.yaml").write_text("tools: [{name: x, efect: pure}]", "utf-8")
    ended = subprocess.run(
        [*COMMAND, "serve", "--reload", "--port", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "tools/mine.yaml:1" in ended.stderr
