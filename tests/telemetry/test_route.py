"""`GET /metrics`: open where only this machine can ask, else for an admin's key."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import open_gate
from tests.telemetry.collector import Collector
from toolgate import Toolgate
from toolgate.server.app import App
from toolgate.settings.execution import Telemetry
from toolgate.settings.settings import Server, Settings
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("O1")
HERE = Server()
BEYOND = Server(host="0.0.0.0", public_url="https://gate.example")  # noqa: S104
PROXIED = Server(public_url="https://gate.example")


async def ask(
    gate: Toolgate,
    server: Server,
    path: str = "/metrics",
    *,
    key: str = "",
    method: str = "GET",
    body: bytes = b"",
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> tuple[int, str, bytes]:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    named = [(b"host", b"127.0.0.1"), *headers]
    if key:
        named.append((b"authorization", f"Bearer {key}".encode()))
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": named,
    }
    await App(gate, server)(scope, receive, send)
    kind = dict(sent[0]["headers"])[b"content-type"].decode()
    return sent[0]["status"], kind, sent[1]["body"]


async def test_on_loopback_it_needs_no_key(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        status, kind, body = await ask(gate, HERE)
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert b"tool_execution_total" in body
        status, _, _ = await ask(gate, HERE, method="POST")
        assert status == 405


@pytest.mark.parametrize("server", [BEYOND, PROXIED], ids=["beyond", "proxied"])
async def test_beyond_this_machine_it_is_for_an_admin(tmp_path: Path, server: Server) -> None:
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.set_agent("acme", "billing")
        admin = await gate.tenancy.add_key(Role.ADMIN, tenant="acme")
        own = await gate.tenancy.add_key(Role.TENANT_ADMIN, tenant="acme")
        agent = await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
        assert (await ask(gate, server))[0] == 401
        assert (await ask(gate, server, key=agent.secret))[0] == 403
        assert (await ask(gate, server, key=own.secret))[0] == 403, "it tells of every tenant"
        assert (await ask(gate, server, key=admin.secret))[0] == 200


async def test_switched_off_there_is_nothing(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, telemetry=Telemetry(metrics=False))
    async with Toolgate.open(settings) as gate:
        assert (await ask(gate, HERE))[0] == 404


async def test_a_call_over_http_belongs_to_the_trace_it_came_with(tmp_path: Path) -> None:
    parent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with Collector() as collector:
        settings = Settings(root=tmp_path, telemetry=Telemetry(traces=collector.url))
        async with Toolgate.open(settings) as gate:
            await gate.tenancy.set_agent("acme", "billing")
            agent = await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
            status, _, body = await ask(
                gate,
                HERE,
                "/v1/call",
                key=agent.secret,
                method="POST",
                body=orjson.dumps({"tool": "echo", "args": {"text": "x"}}),
                headers=((b"traceparent", parent),),
            )
        assert status == 200, body
        [call] = collector.named("toolgate.call")
        assert call.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
