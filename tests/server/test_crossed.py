"""Many clients of two tenants at once: nobody ever gets an answer that belongs to somebody else."""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.houses import House, session
from benchmarks.load import LOOPBACK, Load, loaded, run
from benchmarks.wires import OLD, TOOL, Wire, mcp, rest
from tests.house import open_gate
from tests.server.serving import Serving
from toolgate.tenancy.keys import Role

CLIENTS = 200
CALLS = int(os.environ.get("TOOLGATE_CROSSED_CALLS", "2000"))
TENANTS = ("acme", "umbrella")
# What came first does not end first.
MODULE = '''\
"""A tool that says what it was given, and by whom."""

import asyncio

from toolgate import Call


async def add(a: int, b: int, call: Call) -> dict[str, object]:
    for _ in range(a % 5):
        await asyncio.sleep(0)
    return {"sum": a + b, "tenant": call.caller.tenant, "key": call.caller.key}
'''
TOOLS = f"""\
tools:
  - name: {TOOL}
    config: {{module: crossed_tools, function: add}}
    effect: pure
    input_schema:
      {{type: object, properties: {{a: {{type: integer}}, b: {{type: integer}}}}, required: [a, b]}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own(Wire):
    """A client's wire: the answer has to name its number, its tenant and its key."""

    tenant: str
    key_id: str

    def is_data(self, number: int, data: Any) -> bool:
        return data == {"sum": number + 3, "tenant": self.tenant, "key": self.key_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A key, and whom it stands for."""

    tenant: str
    key_id: str
    secret: str

    def own(self, wire: Wire) -> Own:
        return Own(
            pieces=wire.pieces,
            id_at=wire.id_at,
            data_at=wire.data_at,
            tenant=self.tenant,
            key_id=self.key_id,
        )


async def _clients(root: Path) -> list[Client]:
    """One key a client, and the clients of the two tenants in turn."""
    made: list[Client] = []
    async with open_gate(root) as gate:
        for tenant in TENANTS:
            await gate.tenancy.set_agent(tenant, "billing")
        for number in range(CLIENTS):
            tenant = TENANTS[number % 2]
            fresh = await gate.tenancy.add_key(Role.AGENT, tenant=tenant, agent="billing")
            made.append(Client(tenant=tenant, key_id=fresh.key.id, secret=fresh.secret))
    return made


def _wire(port: int, client: Client, door: str) -> Own:
    if door == "rest":
        return client.own(rest(port, client.secret))
    if door == OLD:
        opened = session(House(pid=0, port=port, key=client.secret))
        return client.own(mcp(port, client.secret, revision=OLD, session=opened))
    return client.own(mcp(port, client.secret))


@pytest.mark.req("V1", "V2", "V3")
@pytest.mark.timeout(60 + CALLS // 250)
def test_no_answer_of_any_door_goes_to_another_client(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "crossed.yaml").write_text(TOOLS, "utf-8")
    (tmp_path / "crossed_tools.py").write_text(MODULE, "utf-8")
    clients = asyncio.run(_clients(tmp_path))
    with Serving(tmp_path) as server:
        # Two of each door one after the other, so that each has clients of both tenants.
        doors = ("mcp", "mcp", OLD, OLD, "mcp", "mcp", "rest", "rest")
        wires = tuple(
            _wire(server.port, client, doors[number % len(doors)])
            for number, client in enumerate(clients)
        )
        served = run(Load(port=server.port, wires=wires, requests=CALLS, connections=CLIENTS))
    assert (served.requests, list(served.wrong)) == (CALLS, [])


async def _crossing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each with what would have been right for another number."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            number = int(body.partition(b'"id":')[2][:9])
            answer = b'{"id":%d,"result":{"structuredContent":{"sum":%d}}}' % (number, number + 4)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer)
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_server_that_crosses_answers_is_caught() -> None:
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.ensure_future(_crossing(reader, writer)))

    async with await asyncio.start_server(talk, LOOPBACK, 0) as server:
        port = server.sockets[0].getsockname()[1]
        served = await loaded(Load(port=port, wires=(mcp(port),), requests=40, connections=8))
        await asyncio.gather(*talks)
    assert len(served.wrong) == 40
    assert served.wrong[0].startswith("not the answer to 1000000")
