"""One event is one line, as text and as JSON, and nothing in it is a secret."""

import io
import json
import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.house import ME, open_gate
from toolgate import Turn, tool
from toolgate.errors import InvalidArguments
from toolgate.executor.trace.trace import calls
from toolgate.telemetry.lines import Brief, JsonLines

pytestmark = pytest.mark.req("O1")
HOSTILE = "x\r\nERROR forged\x1b[2J\u2028\u2029\u202eevil\u2066\u200b\x85\x7f\ufeff"


@tool(effect="pure")
def look(word: str) -> str:
    """Look something up."""
    return word


@tool(effect="irreversible")
def send(word: str) -> str:
    """Send something."""
    return word


@pytest.fixture(params=[Brief, JsonLines], ids=["text", "json"])
def written(request: pytest.FixtureRequest) -> Generator[tuple[io.StringIO, bool]]:
    """What is written for `toolgate.calls`, and whether it is JSON."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(request.param())
    calls.addHandler(handler)
    yield stream, request.param is JsonLines
    calls.removeHandler(handler)
    calls.setLevel(logging.NOTSET)


async def test_each_call_has_a_line_for_its_start_and_its_end(
    tmp_path: Path, written: tuple[io.StringIO, bool]
) -> None:
    stream, is_json = written
    calls.setLevel(logging.INFO)
    async with open_gate(tmp_path) as gate:
        gate.add(look, send)
        await gate.call("look", {"word": "canary-1"}, caller=ME)
        output = None
        for _ in range(2):
            output = await gate.call("send", {"word": "canary-2"}, caller=ME, turn=Turn(group="t1"))
        with pytest.raises(InvalidArguments):
            await gate.call("send", {"word": 7}, caller=ME)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 7, "a pure call's start is for debugging"
    assert "canary" not in stream.getvalue()
    if not is_json:
        assert lines[1].startswith("INFO toolgate.calls: tool_execution_started tenant_id=acme ")
        return
    ended, started, done, _, again, _, refused = map(json.loads, lines)
    assert ended["event"] == "tool_execution_completed"
    assert (ended["tool_name"], ended["status"], ended["cached"]) == ("look", "success", False)
    assert started["event"] == "tool_execution_started"
    assert started["side_effect_policy"] == "irreversible"
    assert started["tenant_id"] == "acme"
    assert started["agent_id"] == "billing"
    assert output is not None
    assert done["call_id"] == started["call_id"] == output.call_id
    assert done["execution_time_ms"] > 0
    assert again["cached"] is True
    assert again["replay_of"] == output.call_id != again["call_id"]
    assert "replay_of" not in done
    assert (refused["status"], refused["error_code"]) == ("refused", "invalid_arguments")


async def test_a_pure_calls_start_is_told_when_debugging(
    tmp_path: Path, written: tuple[io.StringIO, bool]
) -> None:
    stream, _ = written
    calls.setLevel(logging.DEBUG)
    async with open_gate(tmp_path) as gate:
        await gate.call("echo", {"text": "x"}, caller=ME)
    started, ended = stream.getvalue().splitlines()
    assert "tool_execution_started" in started
    assert "tool_execution_completed" in ended


async def test_nothing_is_told_that_nobody_asked_for(
    tmp_path: Path, written: tuple[io.StringIO, bool]
) -> None:
    stream, _ = written
    calls.setLevel(logging.WARNING)
    async with open_gate(tmp_path) as gate:
        await gate.call("echo", {"text": "x"}, caller=ME)
    assert stream.getvalue() == ""


def test_a_hostile_name_is_one_escaped_line(written: tuple[io.StringIO, bool]) -> None:
    stream, is_json = written
    calls.warning("tool %s failed", HOSTILE, extra={"fields": {"tool_name": HOSTILE}})
    [line] = stream.getvalue().splitlines()
    assert line.isprintable()
    if is_json:
        told = json.loads(line)
        assert told["tool_name"] == HOSTILE, "whoever parses it gets it back"
        assert told["event"] == f"tool {HOSTILE} failed"


def test_text_that_is_no_unicode_is_written_too(written: tuple[io.StringIO, bool]) -> None:
    stream, is_json = written
    calls.warning("tool", extra={"fields": {"tool_name": "\ud800"}})
    [line] = stream.getvalue().splitlines()
    assert "ud800" in line
    assert not is_json or json.loads(line)["event"] == "tool"


def _broken() -> None:
    raise LookupError("canary-3")


def test_an_error_is_told_by_kind_and_place(written: tuple[io.StringIO, bool]) -> None:
    stream, _ = written
    try:
        _broken()
    except LookupError:
        calls.exception("it failed")
    told = stream.getvalue()
    assert "LookupError in tests.telemetry.test_lines" in told
    assert "canary" not in told
    assert "Traceback" not in told
