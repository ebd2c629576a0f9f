"""The portable format: `plugin.json`, and the servers of `mcp.json`, each wrong by itself."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME
from tests.plugins.folders import agree, manifest, opened, row, told, tool
from tests.servers.sandboxes import bubblewrap
from toolgate.plugins.package import taken
from toolgate.plugins.portable import Found, Places, read_servers, server_name
from toolgate.settings.outward import is_server_name

pytestmark = pytest.mark.req("U1")
SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
SERVERS = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
# A server of two requests, with nothing but what Python brings; it begins in the plugin's folder.
PROGRAM = """\
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    if number is None:
        continue
    answer = {"jsonrpc": "2.0", "id": number}
    if method == "initialize":
        answer["result"] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "places", "version": "1"},
        }
    elif method == "tools/list":
        hints = {"readOnlyHint": True}
        schema = {"type": "object", "properties": {}}
        one = {"name": "where", "description": "Says where it is.", "inputSchema": schema}
        answer["result"] = {"tools": [one | {"annotations": hints}]}
    elif method == "tools/call":
        with open(os.path.join(os.environ["PLUGIN_DATA"], "written"), "a") as file:
            file.write(sys.argv[1])
        said = {"cwd": os.path.basename(os.getcwd()), "given": os.environ["GIVEN"]}
        answer["result"] = {"content": [{"type": "text", "text": json.dumps(said)}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""


def put(root: Path, servers: dict[str, Any] | None, **more: Any) -> Path:
    folder = root / "plugins" / "places"
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    said = {"$schema": SCHEMA, "name": "places", "version": "1.2.0"} | more
    (folder / "plugin.json").write_text(json.dumps(said), "utf-8")
    (folder / "server.py").write_text(PROGRAM, "utf-8")
    program = folder / "bin" / "server"
    program.write_text('#!/bin/sh\nexec "$PYTHON" -S -E server.py "$@"\n', "utf-8")
    program.chmod(0o755)
    if servers is not None:
        text = json.dumps({"$schema": SERVERS, "mcpServers": servers})
        (folder / "mcp.json").write_text(text, "utf-8")
    return folder


def read(root: Path, servers: Any, **overrides: Any) -> Found:
    folder = put(root, servers)
    return read_servers(taken(folder), lambda: Places(folder, root / "data"), overrides)


STDIO = {
    "type": "stdio",
    "command": "./bin/server",
    "args": ["${PLUGIN_ROOT}-${PLUGIN_DATA}-${HOME}"],
    "env": {"PYTHON": sys.executable, "GIVEN": "${PLUGIN_ROOT}/config"},
}


@pytest.mark.timeout(120)
async def test_a_plugins_server_runs_in_the_sandbox_once_it_is_agreed_to(tmp_path: Path) -> None:
    bubblewrap()
    folder = put(tmp_path, {"local": STDIO})
    (folder / "skills" / "deploy").mkdir(parents=True)
    (folder / "skills" / "deploy" / "SKILL.md").write_text("---\nname: deploy\n---\n", "utf-8")
    (tmp_path / "plugin_settings").mkdir()
    readable = sorted({sys.base_prefix, sys.prefix})
    override = {"local": {"trust": "hints", "readable": readable}}
    text = json.dumps({"server_overrides": override})
    (tmp_path / "plugin_settings" / "places.json").write_text(text, "utf-8")
    async with opened(tmp_path) as gate:
        assert row(gate, "places")["state"] == "waiting"
        assert gate.servers.rows() == []
        await agree(gate, "places")
        shown = await gate.plugins.shown("places")
        assert (shown["servers"], shown["skills"]) == (["places_local"], ["deploy"])
        assert (await gate.servers.tested("places_local"))["ok"], gate.servers.rows()
        assert [one["origin"] for one in gate.servers.rows()] == ["plugin"]
        output = await gate.call("mcp:places_local:where", {}, caller=ME)
        said = json.loads(output.to_human())
        data = tmp_path / "plugin_data" / "places"
        # It runs from a copy of what was agreed to.
        code = data.parent / ".agreed" / shown["fingerprint"] / "places"
        assert said == {"cwd": "places", "given": f"{code}/config"}
        assert (data / "written").read_text() == f"{code}-{data}-${{HOME}}"
        # With its folder its server is gone.
        (folder / "plugin.json").unlink()
        assert (await gate.plugins.reload_changed()).gone == ("places",)
        assert gate.servers.rows() == []


async def test_a_plugin_can_have_tools_of_both_kinds(tmp_path: Path) -> None:
    folder = put(tmp_path, {})
    (folder / "manifest.json").write_text(json.dumps(manifest("places")), "utf-8")
    (folder / "tools.py").write_text("def told(text: str = '') -> str:\n    return 'yes'\n")
    async with opened(tmp_path, "*") as gate:
        assert await told(gate) == "yes"
        assert row(gate, "places")["problem"] == ""


@pytest.mark.parametrize(
    ("more", "state", "says"),
    [
        ({"hooks": {}}, "live", "'hooks' is no field of it"),
        ({"extensions": []}, "live", "extensions is no object"),
        ({"extensions": {"com.example": {"a": 1}}}, "live", ""),
        ({"version": "any", "homepage": "no url", "license": "mine"}, "live", ""),
        ({"author": {"name": "a", "phone": "1"}}, "broken", "does not fit"),
        ({"keywords": "one"}, "broken", "does not fit"),
        ({"$schema": "https://agent-plugins.org/schemas/9.0.0/x"}, "broken", "is not read here"),
        ({"$schema": None}, "broken", f'has no $schema; write "$schema": "{SCHEMA}"'),
        ({"name": "has--two"}, "broken", "no name as plugins have"),
        ({"name": "Places"}, "broken", "no name as plugins have"),
        ({"name": "another"}, "broken", "a plugin is called as its folder is"),
    ],
)
async def test_what_plugin_json_may_say(
    tmp_path: Path, more: dict[str, Any], state: str, says: str
) -> None:
    put(tmp_path, None, **more)
    async with opened(tmp_path, "*") as gate:
        found = row(gate, "places")
        assert (found["state"], says in found["problem"]) == (state, True), found


GOOD = {"type": "streamable-http", "url": "https://tools.example.com/mcp"}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"type": "stdio"}, "does not fit"),
        ({"type": "pigeon", "command": "x"}, "does not fit"),
        ({"command": "x"}, 'write "type": "stdio" for a program'),
        ({**STDIO, "url": "https://x.example"}, "does not fit"),
        ({**STDIO, "command": "../bin/server"}, "no single name"),
        ({**STDIO, "command": "./../../etc/passwd"}, "is no file of the plugin"),
        ({**STDIO, "command": "./nothing"}, "is no file of the plugin"),
        ({**STDIO, "command": "sh -c ls"}, "no single name"),
        ({**STDIO, "command": "/bin/sh"}, "no single name"),
        ({**STDIO, "env": {"PLUGIN_ROOT": "/"}}, "its env sets PLUGIN_ROOT"),
        ({**STDIO, "cwd": "data"}, "does not begin with"),
        ({**STDIO, "cwd": "${PLUGIN_ROOT}x"}, "does not begin with"),
        ({**STDIO, "cwd": "./../../"}, "leads outside"),
        ({**STDIO, "cwd": "${PLUGIN_DATA}/../x"}, "leads outside"),
        ({**GOOD, "url": "http://tools.example.com/mcp"}, "is not https"),
        ({**GOOD, "url": "https://me:secret@tools.example.com/mcp"}, "has a user"),
        ({**GOOD, "url": "file:///etc/passwd"}, "is not https"),
        ({**GOOD, "headers": {"X-Tenant": "public"}}, "fixed headers"),
        ({**GOOD, "type": "sse"}, "HTTP+SSE"),
    ],
)
def test_a_server_that_is_wrong_is_left_out_alone(
    tmp_path: Path, entry: dict[str, Any], says: str
) -> None:
    found = read(tmp_path, {"bad": entry, "good": GOOD, "program": STDIO})
    assert set(found.servers) == {"places_good", "places_program"}
    [note] = found.notes
    assert says in note
    assert "secret" not in note


def test_what_the_operator_says_of_a_server_stands_and_adds_to_what_it_may_reach(
    tmp_path: Path,
) -> None:
    said = {"hosts": ["api.example.com"], "readable": ["/data"], "timeout": 5, "env": {"A": "b"}}
    found = read(tmp_path, {"program": STDIO}, program=said, other={})
    server = found.servers["places_program"]
    assert (server.hosts, server.timeout, server.env["A"]) == (("api.example.com",), 5, "b")
    assert server.readable == (str(tmp_path / "plugins" / "places"), "/data")
    assert server.env["PLUGIN_ROOT"] == str(tmp_path / "plugins" / "places")
    assert found.notes == ("its settings speak of a server 'other', which it lacks",)
    wrong = read(tmp_path, {"program": STDIO}, program={"comand": "x"})
    assert "comand" in wrong.notes[0]


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"mcpServers": {}},
        {"$schema": SERVERS, "mcpServers": []},
        {"$schema": SCHEMA, "mcpServers": {}},
        {"$schema": SERVERS, "mcpServers": {}, "more": 1},
    ],
)
async def test_an_mcp_json_that_is_wrong_takes_no_tools_away(tmp_path: Path, document: Any) -> None:
    folder = put(tmp_path, None)
    (folder / "mcp.json").write_text(json.dumps(document), "utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest("places", tools=[tool()])), "utf-8")
    (folder / "tools.py").write_text("def told(text: str = '') -> str:\n    return 'yes'\n")
    async with opened(tmp_path, "*") as gate:
        assert "its MCP servers are left out" in row(gate, "places")["problem"]
        assert await told(gate) == "yes"


def test_servers_of_two_plugins_never_meet_under_one_name() -> None:
    pairs = [("a", "b-c"), ("a-b", "c"), ("a.b", "c"), ("a", "B-c"), ("a", "b c"), ("x" * 60, "y")]
    names = [server_name(plugin, own) for plugin, own in pairs]
    # Whoever takes the name that another was given for its odd letters is given another one too.
    names.append(server_name("a-b", names[2].removeprefix("a-b_")))
    assert len(set(names)) == len(names)
    assert all(is_server_name(name) for name in names)
