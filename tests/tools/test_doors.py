"""Every built-in tool works at every door, and is the same tool there."""

import asyncio
import os
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import orjson
import pytest
import pytest_asyncio
from typer.testing import CliRunner

from tests.mcp.house import House, opened
from tests.tools.surroundings import Ground, ground
from toolgate import Caller, Toolgate
from toolgate.cli.main import app
from toolgate.tools.table import Row, table

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.req("T1", "T2", "T3", "V1", "V2", "V3", "V5"),
]
HERE = [row for row in table().values() if row.lack() is None]
# What makes something new takes another name at each door.
NEW = {"archive_extract": "to"}
ME = Caller(tenant="acme", agent="billing", user="ann")


class Place(NamedTuple):
    """The doors, and what lies behind them."""

    house: House
    ground: Ground

    @property
    def url(self) -> str:
        return self.house.url.removesuffix("/mcp")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Place]:
    """One for all of them."""
    root = tmp_path_factory.mktemp("doors")
    async with ground(root) as found, opened(root, settings=found.settings) as house:
        yield Place(house, found)


@pytest.mark.parametrize("row", HERE, ids=[row.name for row in HERE])
async def test_a_tool_works_at_every_door(place: Place, row: Row, tmp_path: Path) -> None:
    example = place.ground.args(row.examples[0].args)
    each = [example | await made(place, row.name, n) for n in range(5)]
    told = [
        await by_library(place, row.name, each[0]),
        await by_rest(place, row.name, each[1]),
        await by_mcp(place, row.name, each[2]),
        await by_client(place, row.name, each[3]),
        await asyncio.to_thread(by_command, place, row.name, each[4], tmp_path),
    ]
    assert all(isinstance(door, dict) and door.keys() == told[0].keys() for door in told), told


async def made(place: Place, tool: str, door: int) -> dict[str, Any]:
    """Arguments for what has to be there before a call, or must not be."""
    call = partial(place.house.gate.call, caller=ME)
    if tool == "read_output":
        large = await call("echo", {"text": "x" * 200_000})
        return {"reference": large.data["reference"]}
    if tool == "restore_file":
        written = await call("write_file", {"path": f"files/taken-back-{door}", "content": "x"})
        return {"backup": written.data["backup"]}
    return {NEW[tool]: f"new-{door}"} if tool in NEW else {}


async def by_library(place: Place, tool: str, args: dict[str, Any]) -> Any:
    output = await place.house.gate.call(tool, args, caller=ME)
    return output.data if output.error is None else output.error.code


async def by_rest(place: Place, tool: str, args: dict[str, Any]) -> Any:
    key = {"Authorization": f"Bearer {place.house.ann}"}
    async with (
        aiohttp.ClientSession(headers=key) as http,
        http.post(f"{place.url}/v1/call", json={"tool": tool, "args": args}) as answer,
    ):
        told = await answer.json(content_type=None)
    return told["data"] if told["error"] is None else told["error"]["code"]


async def by_mcp(place: Place, tool: str, args: dict[str, Any]) -> Any:
    _status, told = await place.house.post("tools/call", {"name": tool, "arguments": args})
    result = told["result"]
    if result.get("isError"):
        return result["_meta"]["toolgate/error"]["code"]
    return result["structuredContent"]


async def by_client(place: Place, tool: str, args: dict[str, Any]) -> Any:
    async with Toolgate.connect(place.url, place.house.ann) as remote:
        output = await remote.call(tool, args)
    return output.data if output.error is None else output.error.code


def by_command(place: Place, tool: str, args: dict[str, Any], folder: Path) -> Any:
    known = {"TOOLGATE_URL": place.url, "TOOLGATE_KEY": place.house.ann}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        told = CliRunner().invoke(
            app, ["call", tool, "--args", orjson.dumps(args).decode(), "--json"], env=known
        )
    found = orjson.loads(told.stdout)
    return found["data"] if found.get("error") is None else found["error"]["code"]


@pytest.mark.skipif(
    os.environ.get("TOOLGATE_REQUIRE_SERVICES") != "1", reason="only CI has what every tool needs"
)
async def test_where_everything_is_there_no_tool_is_left_out() -> None:
    assert {row.name for row in HERE} == table().keys()
