"""A tool that raises what would end a process ends its own call, and the log has one line of it."""

from pathlib import Path

import pytest

from tests.server.serving import Serving

CANARY = "canary-77b"
MODULE = '''\
"""Tools that raise what nobody catches."""

import asyncio


class Own(BaseException):
    pass


Own.__name__ = "Own\\nERROR forged: line"
KINDS = {
    "interrupt": KeyboardInterrupt,
    "exit": SystemExit,
    "own": Own,
    "cancelled": asyncio.CancelledError,
}


async def later(kind: str) -> None:
    await asyncio.sleep(0)
    raise KINDS[kind]("CANARY")


def now(kind: str) -> None:
    raise KINDS[kind]("CANARY")
'''.replace("CANARY", CANARY)
TOOLS = "tools:\n" + "".join(
    f"  - name: {name}\n"
    f"    config: {{module: ending_tools, function: {name}}}\n"
    "    effect: irreversible\n"
    "    input_schema: {type: object, properties: {kind: {type: string}}, required: [kind]}\n"
    for name in ("later", "now")
)


GUARD_OFF = (
    "from toolgate.server import app\n"
    "app._is_the_end = lambda error: not isinstance(error, Exception)\n"
    "from toolgate.providers import python\n"
    "def through(call, error):\n"
    "    raise error\n"
    "python.execution_failed = through\n"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "ending.yaml").write_text(TOOLS, "utf-8")
    (tmp_path / "ending_tools.py").write_text(MODULE, "utf-8")
    return tmp_path


def test_without_the_guard_uvicorn_would_answer(root: Path) -> None:
    with Serving(root, before=GUARD_OFF) as server:
        answer = server.call("later", {"kind": "own"}, key=server.greeting["keys"]["agent"])
        assert (answer.status, answer.text) == (500, "Internal Server Error")
        assert "Exception in ASGI" in server.log


@pytest.mark.req("X5")
def test_a_tool_cannot_end_the_server_or_write_its_log(root: Path) -> None:
    with Serving(root) as server:
        key = server.greeting["keys"]["agent"]
        for tool in ("later", "now"):
            for kind in ("interrupt", "exit", "own", "cancelled"):
                answer = server.call(tool, {"kind": kind}, key=key)
                assert answer.headers["content-type"].startswith("application/"), (tool, kind)
                assert answer.body["code" if answer.status >= 400 else "error"], (tool, kind)
                assert CANARY not in answer.text
                assert server.get("/healthz").status == 200
        log = server.log
        assert server.stop() == 0
    assert "tool later failed with KeyboardInterrupt in later, line" in log
    assert r"tool later failed with Own\nERROR forged: line in later, line" in log
    for leak in (CANARY, "Traceback", "Exception in ASGI", "\nERROR forged"):
        assert leak not in log
