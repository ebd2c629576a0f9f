"""Every built-in tool, on a server as `make run` starts it: its first keys, its demo agent, and a
person who agrees where one is asked.
"""

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple

import orjson
import pytest
import pytest_asyncio
import tomlkit

from tests.mcp.house import META, MODERN
from tests.server.serving import COMMAND, Serving
from tests.tools.surroundings import Ground, ground
from toolgate.tools.table import Row, table

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.req("T1", "T2", "T3", "V1", "V2", "V5"),
]
HERE = [row for row in table().values() if row.lack() is None]
# What makes something new takes another name at each door.
NEW = {"archive_extract": "to"}
BY_COMMAND = ("calculate", "json_query", "write_file", "code_execute", "list_directory")
ASKED = {"run_shell", "memory_delete", "memory_forget", "reload_plugins"}


class Place(NamedTuple):
    """The server, and what lies around it."""

    server: Serving
    ground: Ground

    @property
    def key(self) -> str:
        return self.server.greeting["keys"]["agent"]

    def by_rest(self, tool: str, args: dict[str, Any]) -> tuple[str, Any]:
        """The status, and what came of it."""
        told = self.server.call(tool, args, key=self.key).body
        return told.get("status", told), told.get("data")

    def by_mcp(self, tool: str, args: dict[str, Any]) -> tuple[str, Any]:
        params = {"name": tool, "arguments": args, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        head = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        told = self.server.ask("POST", "/mcp", key=self.key, body=body, headers=head).body
        result = told.get("result", told)
        status = result.get("_meta", {}).get("toolgate/status", result)
        return status, result.get("structuredContent")

    def by_command(self, tool: str, args: dict[str, Any]) -> tuple[str, Any]:
        """The program itself, with the server's address and the agent's key."""
        found = subprocess.run(
            [*COMMAND, "call", tool, "--args", orjson.dumps(args).decode(), "--json"],
            cwd=self.server.root,
            env={"TOOLGATE_URL": self.server.greeting["url"], "TOOLGATE_KEY": self.key},
            capture_output=True,
            check=False,
        )
        told = orjson.loads(found.stdout)
        return told.get("status", told), told.get("data")

    def agree(self) -> None:
        """As the operator, to whatever waits."""
        admin = self.server.greeting["keys"]["admin"]
        waiting = self.server.get("/v1/approvals?tenant=demo", admin).body["approvals"]
        for one in waiting:
            where = f"/v1/approvals/{one['id']}/approve"
            assert self.server.ask("POST", where, key=admin, body={}).status == 200


Door = Callable[[str, dict[str, Any]], tuple[str, Any]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Place]:
    """One for all of them. Of the settings only addresses are other than at a first start."""
    root = tmp_path_factory.mktemp("every-tool")
    async with ground(root) as found:
        settings = found.settings.model_dump(
            exclude_unset=True, mode="json", include={"tools", "net"}
        )
        near = settings["tools"]["agent"]["subordinates"]
        settings["tools"]["agent"]["subordinates"] = {
            name: one for name, one in near.items() if "callback" not in one
        }
        (root / "toolgate.toml").write_text(tomlkit.dumps(settings), "utf-8")
        server = await asyncio.to_thread(Serving, root)
        try:
            yield Place(server, found)
        finally:
            await asyncio.to_thread(server.stop)


async def done(place: Place, door: Door, tool: str, args: dict[str, Any]) -> Any:
    """What a call gives, once somebody has agreed where somebody has to."""
    status, data = await asyncio.to_thread(door, tool, args)
    if status == "pending_approval":
        await asyncio.to_thread(place.agree)
        status, data = await asyncio.to_thread(door, tool, args)
    assert status == "success", (tool, status, data)
    return data


async def prepared(place: Place, row: Row, number: int) -> dict[str, Any]:
    """The arguments of its first example, at one of the doors."""
    example = row.examples[0]
    args = place.ground.args(example.args)
    for step in example.before:
        before = place.ground.args(step.args)
        args |= step.given(await done(place, place.by_rest, step.tool, before))
    return args | ({NEW[row.name]: f"new-{number}"} if row.name in NEW else {})


@pytest.mark.parametrize("row", HERE, ids=[row.name for row in HERE])
async def test_a_tool_works_as_served(place: Place, row: Row) -> None:
    doors: list[Door] = [place.by_rest, place.by_mcp]
    doors += [place.by_command] if row.name in BY_COMMAND else []
    told = [
        await done(place, door, row.name, await prepared(place, row, number))
        for number, door in enumerate(doors)
    ]
    assert all(isinstance(one, dict) and one.keys() == told[0].keys() for one in told), told


async def test_a_person_is_asked_where_one_has_to_be(place: Place) -> None:
    for name in ASKED:
        args = place.ground.args(table()[name].examples[-1].args)
        status, data = await asyncio.to_thread(place.by_rest, name, args)
        assert (status, data) == ("pending_approval", None), name
