"""Two hundred secrets come to both doors by every way; none is in a sink, nor in a refusal."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
import pytest

from tests.mcp.house import META, MODERN
from tests.server.raw import connect, everything
from tests.server.serving import Answer, Serving
from tests.telemetry.collector import Collector

pytestmark = pytest.mark.req("O1", "O2", "V2", "X5")
VARIABLE = "TOOLGATE_TEST_HOOK"
ENVIRONMENT = "canary-0000-environment"
VISIBLE = "visible-marker-2"
# It begins another line, speaks to the terminal, and turns the reading order around.
HOSTILE = "x\r\nERROR forged\x1b[2J\u2028\u2029\u202eevil\u2066\x85\x7f"
MODULE = """\
import os

from toolgate import ToolError


def login(user: str = "", password: str = "", how: str = "", more: object = None) -> object:
    held = os.environ["VARIABLE"]
    if how == "raise":
        raise type(user or "Wrong", (ValueError,), {})(f"password {password} at {held}")
    if how == "say":
        raise ToolError(f"https://ann:{password}@host has {held}", at=[password])
    return {"token": password, "held": [held], "note": "VISIBLE"}
""".replace("VARIABLE", VARIABLE).replace("VISIBLE", VISIBLE)
SCHEMA = """\
    input_schema:
      type: object
      properties:
        user: {type: string}
        password: {type: string, format: password, maxLength: 40}
        how: {type: string}
        more: {type: object}
    output_schema: {type: object, properties: {token: {secret: true}}}
"""
TOOLS = f"""\
tools:
  - name: login
    config: {{module: leaky_tools, function: login}}
    effect: irreversible
{SCHEMA}
  - name: check
    config: {{module: leaky_tools, function: login}}
    effect: pure
{SCHEMA}
"""
REFUSED = re.compile(r'"error":\{|"isError":true')
SETTINGS = """\
[telemetry]
log = "json"
level = "debug"
traces = "{traces}"

[events]
url = "http://127.0.0.1:9/hook"
secret_env = "{variable}"
"""


class Way(NamedTuple):
    """How a secret comes: to which path, in which body, under which headers."""

    path: str
    body: Any = None
    headers: Mapping[str, str] = {}
    has_key: bool = True


def _rpc(tool: str, args: Mapping[str, Any]) -> Way:
    params = {"name": tool, "arguments": args, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    sent = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return Way("/mcp", body, {**sent, "Accept": "application/json, text/event-stream"})


def _ways(secret: Callable[[], str]) -> Iterator[Way]:
    for tool in ("login", "check", "missing"):
        for how in ("", "raise", "say"):
            yield Way("/v1/call", {"tool": tool, "args": {"password": secret(), "how": how}})
            yield _rpc(tool, {"password": secret(), "how": how})
        for wrong in ({"password": [secret()]}, {"password": secret() * 3}):
            yield Way("/v1/call", {"tool": tool, "args": wrong})
            yield _rpc(tool, wrong)
    one = {"tool": "login", "args": {"password": secret(), "user": VISIBLE}}
    said = {"tool_name": "login", "tool_args": {"password": secret(), "how": "raise"}}
    yield Way("/v1/batch", {"calls": [one]})
    yield Way("/v1/chain", {"steps": [one]})
    yield Way("/v1/messages", {"message": said})
    headers = {"Authorization": f"Basic {secret()}", "Set-Cookie": secret()}
    userinfo = f"https://ann:{secret()}@host/{VISIBLE}"
    for more in ({"headers": headers}, {"url": userinfo}, {"deep": [{"X-Api-Key": secret()}]}):
        yield Way("/v1/call", {"tool": "login", "args": {"more": more}})
        yield _rpc("login", {"more": more})
    sent = {"Cookie": f"s={secret()}", "X-Api-Key": secret(), "Proxy-Authorization": secret()}
    for path in ("/v1/tools", "/mcp", "/v1/nowhere", "/metrics"):
        yield Way(path, headers=sent | {"Referer": f"http://u:{secret()}@h/"})
        for scheme in ("Bearer tg_agent_", "Basic ", "Bearer e30.e30."):
            yield Way(path, headers={"Authorization": scheme + secret()}, has_key=False)
    for name in ("login", HOSTILE):
        yield Way("/v1/call", {"tool": name, "args": {"user": HOSTILE, "how": "raise"}})
        yield Way("/v1/call", {"tool": name, "args": {HOSTILE: HOSTILE}})
    yield Way(f"/v1/tools/{quote(HOSTILE)}", headers={"Referer": quote(HOSTILE)})
    yield Way(f"/v1/tools?api_key={secret()}")
    yield Way(f"/v1/tools?limit={secret()}")
    yield Way(f"/v1/nowhere/{secret()}")


class Found(NamedTuple):
    """What was given, and what is where."""

    given: list[str]
    sinks: Mapping[str, bytes]

    @property
    def leaks(self) -> set[tuple[str, str]]:
        return {
            (name, secret)
            for name, sink in self.sinks.items()
            for secret in self.given
            if secret.encode() in sink
        }


def _ask(server: Serving, key: str, way: Way) -> Answer:
    method = "GET" if way.body is None else "POST"
    held = key if way.has_key else None
    return server.ask(method, way.path, key=held, body=way.body, headers=way.headers)


def _went(root: Path, before: str = "") -> Found:
    numbers = count(1)
    given = [ENVIRONMENT]

    def secret() -> str:
        number = next(numbers)
        given.append(f"canary-{number:04}-{number * 7919:08x}")
        return given[-1]

    (root / "tools").mkdir()
    (root / "tools" / "leaky.yaml").write_text(TOOLS, "utf-8")
    (root / "leaky_tools.py").write_text(MODULE, "utf-8")
    refusals = b""
    with Collector() as collector:
        text = SETTINGS.format(traces=collector.url, variable=VARIABLE)
        (root / "toolgate.toml").write_text(text, "utf-8")
        with Serving(root, before=before) as server:
            keys = server.greeting["keys"]
            while len(given) <= 200:
                for way in _ways(secret):
                    answer = _ask(server, keys["agent"], way)
                    # Who has a secret back from the tool it gave it to was told nothing new.
                    if answer.status != 200 or REFUSED.search(answer.text):
                        refusals += answer.text.encode()
            with closing(connect(server)) as line:
                line.sendall(b"GET http://u:%s@h/ HTTP/1.1\r\nHost: h\r\n\r\n" % secret().encode())
                refusals += everything(line)
            metrics = server.get("/metrics", keys["admin"]).text.encode()
            for path in ("/v1/admin/audit", "/v1/admin/calls", "/v1/admin/health"):
                metrics += server.get(f"{path}?limit=500", keys["admin"]).text.encode()
        kept = b"".join(path.read_bytes() for path in (root / ".toolgate").iterdir())
        log = server.log.encode()
        traces = collector.raw
    return Found(
        given,
        {"store": kept, "log": log, "shown": metrics, "traces": traces, "refusals": refusals},
    )


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, ENVIRONMENT)


def test_no_secret_of_either_door_is_in_a_sink_or_a_refusal(tmp_path: Path) -> None:
    found = _went(tmp_path)
    assert len(found.given) > 200
    assert found.leaks == set()
    # The positive control: each of them was written to, and what is no secret is there.
    seen = {
        "store": VISIBLE,
        "log": "tool_execution_completed",
        "shown": 'tool_name="login"',
        "traces": "toolgate.call",
        "refusals": "malformed_request",
    }
    assert {name for name, word in seen.items() if word.encode() in found.sinks[name]} == {*seen}
    # What was named to look like other lines is one, and whoever parses it gets the name back.
    lines = found.sinks["log"].decode().removesuffix("\n").split("\n")
    assert all(line.isprintable() for line in lines)
    assert any(f" {HOSTILE} in " in orjson.loads(line)["event"] for line in lines)


GUARDS_OFF = """\
import logging
from toolgate.executor import validate
from toolgate.providers import python
from toolgate.spec.redactor import Redactor
from toolgate.telemetry import lines
Redactor.raw = lambda _, raw: raw
validate.without_values = lambda schema, args, problems: problems
failed = python.execution_failed
def told(call, error):
    logging.getLogger("toolgate.tools").warning("%s", error)
    return failed(call, error)
python.execution_failed = told
lines._JSON_CONTROL = {}
"""


def test_without_the_guards_secrets_and_signs_would_be_there(tmp_path: Path) -> None:
    """The guard-off control."""
    found = _went(tmp_path, GUARDS_OFF)
    assert {"store", "refusals", "log"} <= {name for name, _ in found.leaks}
    assert not all(line.isprintable() for line in found.sinks["log"].decode().splitlines())
