"""Servers as they are published, each in the sandbox, behind the gate and the executor."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.servers import served
from tests.servers.sandboxes import bubblewrap
from toolgate import Caller, Toolgate
from toolgate.errors import InvalidArguments, ToolNotFound
from toolgate.settings.outward import McpServer
from toolgate.settings.settings import Mcp, Settings
from toolgate.spec.effect import Effect

pytestmark = [pytest.mark.req("P3", "C2"), pytest.mark.usefixtures("sandboxed")]
ME = Caller(tenant="acme", agent="clerk")
OVERLAY = """
tools:
  create_entities:
    effect: compensatable
    compensation: {tool: "mcp:memory:delete_entities", args: {entityNames: [ann]}}
  delete_entities: {effect: idempotent}
"""


@pytest.fixture
def sandboxed() -> None:
    bubblewrap()


def settings(root: Path, **servers: Mapping[str, object]) -> Settings:
    named = {
        name: McpServer.model_validate({"trust": "hints", **given})
        for name, given in servers.items()
    }
    return Settings(root=root, mcp=Mcp(servers=named))


async def test_the_time_server_tells_the_time(tmp_path: Path) -> None:
    async with Toolgate.open(settings(tmp_path, time=served.time_server())) as gate:
        assert (await gate.servers.tested("time"))["ok"], gate.servers.rows()
        output = await gate.call("get_current_time", {"timezone": "UTC"}, caller=ME)
        assert output.ok
        assert "UTC" in output.to_human()
        with pytest.raises(InvalidArguments):
            await gate.call("get_current_time", {}, caller=ME)
        said = await gate.call("get_current_time", {"timezone": "No/Where"}, caller=ME)
        assert said.error is not None


async def test_a_program_beside_the_settings_is_found_from_any_folder(tmp_path: Path) -> None:
    given = served.time_server()
    [program, *arguments] = given["command"]
    clock = tmp_path / "bin" / "clock"
    clock.parent.mkdir()
    clock.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    clock.chmod(0o755)
    own = given | {"command": ["bin/clock", *arguments], "readable": [*given["readable"], "bin"]}
    whole = own | {"command": ["/bin/clock", *arguments]}
    async with Toolgate.open(settings(tmp_path, time=own, other=whole)) as gate:
        assert (await gate.servers.tested("time"))["ok"], gate.servers.rows()
        assert not (await gate.servers.tested("other"))["ok"], "a whole path is left as it is"


async def test_the_file_server_reads_its_folder_and_asks_before_it_writes(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.txt").write_text("hello")
    (tmp_path / "secret.txt").write_text("not yours")
    async with Toolgate.open(settings(tmp_path, files=served.file_server(folder))) as gate:
        assert (await gate.servers.tested("files"))["ok"], gate.servers.rows()
        read = await gate.call("read_text_file", {"path": str(folder / "a.txt")}, caller=ME)
        assert "hello" in read.to_human()
        beyond = await gate.call(
            "read_text_file", {"path": str(tmp_path / "secret.txt")}, caller=ME
        )
        assert beyond.error is not None
        assert "not yours" not in beyond.to_human()
        args = {"path": str(folder / "b.txt"), "content": "written"}
        waits = await gate.call("mcp:files:write_file", args, caller=ME)
        assert waits.status == "pending_approval"
        assert not (folder / "b.txt").exists()
        await gate.tenancy.set_tool("mcp:files:read_text_file", enabled=False)
        with pytest.raises(ToolNotFound):
            await gate.call("read_text_file", {"path": str(folder / "a.txt")}, caller=ME)


async def test_what_the_memory_server_keeps_can_be_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "memory.yaml").write_text(OVERLAY)
    given = {**served.memory_server(folder), "overlay": "memory.yaml"}
    async with Toolgate.open(settings(tmp_path, memory=given)) as gate:
        assert (await gate.servers.tested("memory"))["ok"], gate.servers.rows()
        specs = gate.catalog.current.specs
        assert specs["mcp:memory:create_entities"].effect is Effect.COMPENSATABLE
        ann = {"name": "ann", "entityType": "person", "observations": ["likes tea"]}
        done = await gate.call("create_entities", {"entities": [ann]}, caller=ME)
        assert done.ok
        graph = await gate.call("read_graph", {}, caller=ME)
        assert "likes tea" in graph.to_human()
        await gate.undo(caller=ME, call_id=done.call_id)
        graph = await gate.call("read_graph", {}, caller=ME)
        assert "likes tea" not in graph.to_human()
