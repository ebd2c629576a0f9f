"""Tasks with real clients: the official one, one that listens, one on a pipe, one that stays too
long.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, ClassVar, Literal

import aiohttp
import orjson
import pytest
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict

from tests.house import STORE, until
from tests.mcp.house import META, MODERN, House, opened
from tests.mcp.tasking import CAPABILITIES, EXTENSION, TAKES, Desk
from tests.server.serving import COMMAND, Serving
from toolgate import Call, tool

pytestmark = pytest.mark.req("V1")
MODULE = '''\
"""Tools that end when a file appears."""

import asyncio
from pathlib import Path


async def wait_for(path: str) -> str:
    while not Path(path).exists():
        await asyncio.sleep(0.01)
    return "done"
'''
TOOLS = "tools:\n" + "".join(
    f"  - name: {name}\n"
    "    config: {module: waiting_tools, function: wait_for}\n"
    f"    effect: {effect}\n"
    "    timeout: 120\n"
    "    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}\n"
    for name, effect in (("send", "irreversible"), ("look", "pure"))
)


class Made(Result):
    """What the official client knows of a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"
    task_id: str


class OfTask(RequestParams):
    """Which one."""

    task_id: str


class Get(Request[OfTask, Literal["tasks/get"]]):
    """How it stands."""

    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/get"] = "tasks/get"


class Stands(Result):
    """As it is told."""

    model_config = ConfigDict(extra="allow")
    status: str
    result: dict[str, Any] | None = None


class Polls(ClientExtension):
    """Takes tasks, and asks until they are over."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.seen: list[str] = []

    def claims(self) -> list[ResultClaim[Made]]:
        return [ResultClaim(result_type="task", model=Made, resolve=self._resolve)]

    async def _resolve(self, made: Made, at: ClaimContext) -> CallToolResult:
        self.seen.append(made.task_id)
        while True:
            asked = Get(params=OfTask(task_id=made.task_id))
            found = await at.session.send_request(asked, Stands)
            if found.result is not None:
                return CallToolResult.model_validate(found.result)
            await asyncio.sleep(0.01)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with opened(tmp_path, task_after=0.01) as found:
        yield found


def slow_tool(go: asyncio.Event) -> Any:
    @tool(effect="pure")
    async def look(call: Call) -> dict[str, str]:
        """Look at it for long."""
        call.progress(1, 2, "looking")
        await go.wait()
        call.progress(2, 2, "seen")
        return {"seen": "all"}

    return look


async def test_the_official_client_takes_tasks(house: House) -> None:
    go, polls = asyncio.Event(), Polls()
    house.gate.add(slow_tool(go))
    async with house.client(extensions=[polls]) as client:
        calling = asyncio.create_task(client.call_tool("look", {}))
        await until(lambda: bool(polls.seen))
        go.set()
        assert (await calling).structured_content == {"seen": "all"}
    async with house.client("legacy", extensions=[Polls()]) as client:
        assert (await client.call_tool("look", {})).structured_content == {"seen": "all"}
    assert len(polls.seen) == 1


@asynccontextmanager
async def events(
    house: House, method: str, params: dict[str, Any], takes: Any = TAKES
) -> AsyncGenerator[AsyncGenerator[Any]]:
    """The messages of an answer that stays open."""
    meta = {**META, CAPABILITIES: takes, **params.pop("_meta", {})}
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "Authorization": f"Bearer {house.ann}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }

    async def messages(answer: aiohttp.ClientResponse) -> AsyncGenerator[Any]:
        async for line in answer.content:
            if line.startswith(b"data: "):
                yield orjson.loads(line[6:])

    async with (
        aiohttp.ClientSession() as http,
        http.post(house.url, json=body, headers=headers) as answer,
    ):
        yield messages(answer)


async def test_who_listens_to_a_task_is_told_when_it_changes(house: House) -> None:
    go = asyncio.Event()
    house.gate.add(slow_tool(go))
    made = await Desk(house).call("look")
    wanted = {"taskIds": [made["taskId"], "nobody's", 5]}
    async with events(house, "subscriptions/listen", {"notifications": wanted}) as told:
        ack = await anext(told)
        assert ack["params"]["notifications"] == {"taskIds": [made["taskId"]]}
        first = await anext(told)
        assert first["method"] == "notifications/tasks"
        assert first["params"]["status"] == "working"
        go.set()
        last = (await anext(told))["params"]
    assert (last["taskId"], last["status"]) == (made["taskId"], "completed")
    assert last["result"]["structuredContent"] == {"seen": "all"}
    assert last["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7
    shown = await Desk(house).get(made)
    shown.pop("resultType")
    assert shown | {"_meta": 0} == last | {"_meta": 0}
    refused: tuple[tuple[Any, Any, int], ...] = (
        ({}, [made["taskId"]], -32021),
        (TAKES, "x", -32602),
    )
    for takes, ids, code in refused:
        listening = {"notifications": {"taskIds": ids}}
        async with events(house, "subscriptions/listen", listening, takes) as told:
            assert (await anext(told))["error"]["code"] == code


async def test_a_stream_ends_with_its_task_and_progress_goes_on_there(house: House) -> None:
    go = asyncio.Event()
    house.gate.add(slow_tool(go))
    params = {"name": "look", "arguments": {}, "_meta": {"progressToken": "p"}}
    async with events(house, "tools/call", params) as told:
        assert (await anext(told))["params"]["message"] == "looking"
        made = (await anext(told))["result"]
        assert made["resultType"] == "task"
        go.set()
        assert [one async for one in told] == []
    assert (await Desk(house).over(made))["status"] == "completed"


@pytest.mark.req("P6")
async def test_a_queued_call_is_told_by_its_id_while_it_waits(house: House) -> None:
    go = asyncio.Event()

    @tool(effect="irreversible", execution="queued")
    async def later() -> str:
        """Done by a worker."""
        await go.wait()
        return "done"

    house.gate.add(later)
    params: dict[str, Any] = {"name": "later", "arguments": {}, "_meta": {"progressToken": "p"}}
    async with events(house, "tools/call", params, takes={}) as told:
        progress = (await anext(told))["params"]
        call_id = progress["_meta"]["toolgate/callId"]
        assert progress["progress"] == 0
        assert progress["message"] == f"queued as {call_id}"
        assert (await house.gate.find("acme", call_id)).is_open
        go.set()
        result = (await anext(told))["result"]
        assert result["_meta"]["toolgate/callId"] == call_id
    go.clear()
    desk = Desk(house)
    made = await desk.call("later")
    async with asyncio.timeout(20):
        while "toolgate/callId" not in (shown := await desk.get(made))["_meta"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    waiting = shown["_meta"]["toolgate/callId"]
    assert (shown["status"], shown["statusMessage"]) == ("working", f"queued as {waiting}")
    go.set()
    over = await desk.over(made)
    assert over["result"]["_meta"]["toolgate/callId"] == waiting != call_id


def serve(root: Path, settings: str) -> Serving:
    (root / "toolgate.toml").write_text(settings, "utf-8")
    (root / "tools").mkdir()
    (root / "tools" / "waiting.yaml").write_text(TOOLS, "utf-8")
    (root / "waiting_tools.py").write_text(MODULE, "utf-8")
    return Serving(root)


def task_of(server: Serving, name: str, path: Path) -> Any:
    meta = {**META, CAPABILITIES: TAKES}
    params = {"name": name, "arguments": {"path": str(path)}, "_meta": meta}
    answer = server.ask(
        "POST",
        "/mcp",
        key=server.greeting["keys"]["agent"],
        body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
        },
    )
    assert answer.body["result"]["resultType"] == "task"
    return answer.body["result"]


def recorded(root: Path) -> list[str]:
    with closing(sqlite3.connect(root / STORE)) as connection:
        rows = connection.execute("SELECT state FROM tool_execution_log")
        return [one for (one,) in rows]


@pytest.mark.req("S3")
async def test_a_server_that_is_told_to_stop_finishes_its_tasks(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with serve(tmp_path, "[mcp]\ntask_after = 0.05\n") as server:
        for _ in range(3):
            task_of(server, "send", go)
        task_of(server, "look", tmp_path / "never")
        server.process.terminate()
        await until(lambda: recorded(tmp_path) == ["started"] * 3)
        assert server.process.poll() is None
        go.touch()
        # What changes nothing holds nothing up: nobody could ask for it.
        assert server.process.wait(40) == 0
        assert "were not over" not in server.log
    assert recorded(tmp_path) == ["succeeded"] * 3


@pytest.mark.req("S3")
def test_a_task_holds_the_end_up_for_so_long_and_is_on_record(tmp_path: Path) -> None:
    settings = "[mcp]\ntask_after = 0.05\n[server]\ndrain = 0.1\n"
    with serve(tmp_path, settings) as server:
        task_of(server, "send", tmp_path / "never")
        server.process.terminate()
        server.process.wait(40)
        assert "1 tasks were not over; how their calls ended is on record" in server.log
    assert recorded(tmp_path) == ["unknown"]


@pytest.mark.req("S3")
async def test_a_program_on_a_pipe_gets_tasks_and_its_side_effects_come_to_their_end(
    tmp_path: Path,
) -> None:
    serve_root, go = tmp_path, tmp_path / "go"
    (serve_root / "toolgate.toml").write_text("[mcp]\ntask_after = 0.05\n", "utf-8")
    (serve_root / "tools").mkdir()
    (serve_root / "tools" / "waiting.yaml").write_text(TOOLS, "utf-8")
    (serve_root / "waiting_tools.py").write_text(MODULE, "utf-8")
    child = await asyncio.create_subprocess_exec(
        *COMMAND,
        "stdio",
        cwd=serve_root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    meta = {**META, CAPABILITIES: TAKES}

    async def ask(id_: int, method: str, params: dict[str, Any]) -> Any:
        assert child.stdin is not None
        assert child.stdout is not None
        message = {"jsonrpc": "2.0", "id": id_, "method": method}
        child.stdin.write(orjson.dumps(message | {"params": params | {"_meta": meta}}) + b"\n")
        return orjson.loads(await child.stdout.readline())["result"]

    try:
        made = await ask(1, "tools/call", {"name": "send", "arguments": {"path": str(go)}})
        assert made["resultType"] == "task"
        assert (await ask(2, "tasks/get", {"taskId": made["taskId"]}))["status"] == "working"
        child.stdin.close()
        await until(lambda: recorded(tmp_path) == ["started"])
        go.touch()
        assert await asyncio.wait_for(child.wait(), 40) == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert recorded(tmp_path) == ["succeeded"]
