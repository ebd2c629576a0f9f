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


@pytest.mark.req("X5")
def test_a_tool_cannot_end_the_server_or_write_its_log(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "ending.yaml").write_text(TOOLS, "utf-8")
    (tmp_path / "ending_tools.py").write_text(MODULE, "utf-8")
    with Serving(tmp_path) as server:
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
    for leak in (CANARY, "Traceback", "Exception in ASGI", "\nERROR forged"):
        assert leak not in log
