"""A served house with keys of every role in two tenants, and tools that stream, tell and wait."""

import asyncio
import http.client
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.house import open_gate
from tests.server.admins import PLUGIN
from tests.server.serving import Answer, Serving
from toolgate.tenancy.keys import Role

MODULE = '''\
"""Functions that the served tools name."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from toolgate import Call


async def count(to: int) -> AsyncIterator[int]:
    for number in range(to):
        yield number


async def tell(call: Call) -> str:
    call.progress(1, 2, "half")
    call.log("nearly there")
    return "done"


async def hold(path: str) -> str:
    Path(path + ".begun").touch()
    while not Path(path).exists():
        await asyncio.sleep(0.01)
    Path(path + ".ended").touch()
    return "let go"


def act(text: str) -> str:
    return text
'''
_TEXT = "{type: object, properties: {text: {type: string}}, required: [text]}"
_PATH = "{type: object, properties: {path: {type: string}}, required: [path]}"
_TO = "{type: object, properties: {to: {type: integer}}, required: [to]}"
TOOLS = f"""\
tools:
  - name: count
    config: {{module: busy_tools, function: count}}
    effect: pure
    input_schema: {_TO}
  - {{name: tell, config: {{module: busy_tools, function: tell}}, effect: pure}}
  - name: hold
    config: {{module: busy_tools, function: hold}}
    effect: irreversible
    input_schema: {_PATH}
  - name: act
    config: {{module: busy_tools, function: act}}
    effect: compensatable
    compensation: {{tool: unact, args: {{text: back}}}}
    input_schema: {_TEXT}
  - name: unact
    config: {{module: busy_tools, function: act}}
    effect: idempotent
    input_schema: {_TEXT}
  - name: careful
    config: {{module: busy_tools, function: act}}
    effect: irreversible
    requires_approval: true
    input_schema: {_TEXT}
  - {{name: a/b, config: {{builtin: timestamp}}, effect: pure}}
"""
# By name: the role, the tenant, the agent and the user.
WHO: Mapping[str, tuple[Role, str, str, str]] = {
    "admin": (Role.ADMIN, "acme", "", ""),
    "own": (Role.TENANT_ADMIN, "acme", "", ""),
    "operator": (Role.OPERATOR, "acme", "", ""),
    "approver": (Role.APPROVER, "acme", "", ""),
    "agent": (Role.AGENT, "acme", "billing", "ann"),
    "intern": (Role.AGENT, "acme", "intern", "ann"),
    "bob": (Role.AGENT, "acme", "billing", "bob"),
    "other": (Role.TENANT_ADMIN, "umbrella", "", ""),
    "stranger": (Role.AGENT, "umbrella", "billing", "ann"),
    "watcher": (Role.OPERATOR, "umbrella", "", ""),
    "arbiter": (Role.APPROVER, "umbrella", "", ""),
}


class Busy(NamedTuple):
    server: Serving
    secrets: Mapping[str, str]
    ids: Mapping[str, str]

    def ask(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.server.ask(method, path, key=self.secrets.get(who), body=body, headers=sent)

    def call(self, who: str, tool: str, args: Any = None, **fields: Any) -> Answer:
        return self.ask(who, "POST", "/v1/call", {"tool": tool, "args": args or {}, **fields})

    @contextmanager
    def stream(
        self, who: str, method: str, path: str, body: Any = None
    ) -> Generator[tuple[http.client.HTTPResponse, Iterator[tuple[str, Any]]]]:
        """An answer of events, and those events; comments are the event `:`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {self.secrets[who]}"}
        payload = None if body is None else orjson.dumps(body)
        try:
            connection.request(method, path, body=payload, headers=headers)
            response = connection.getresponse()
            yield response, _events(response)
        finally:
            connection.close()


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name, data = "", b""
    while line := response.readline():
        if line.startswith(b":"):
            yield ":", line[1:].strip().decode()
        elif line.startswith(b"event: "):
            name = line[7:].strip().decode()
        elif line.startswith(b"data: "):
            data = line[6:]
        elif line == b"\n" and name:
            yield name, orjson.loads(data)
            name = ""


async def _keys(root: Path) -> dict[str, tuple[str, str]]:
    async with open_gate(root) as gate:
        tenancy = gate.tenancy
        for tenant, agent in (("acme", "billing"), ("acme", "intern"), ("umbrella", "billing")):
            await tenancy.set_agent(tenant, agent)
        made: dict[str, tuple[str, str]] = {}
        for who, (role, tenant, agent, user) in WHO.items():
            fresh = await tenancy.add_key(role, tenant=tenant, agent=agent, user=user)
            made[who] = fresh.secret, fresh.key.id
        return made


@contextmanager
def busy(root: Path, before: str = "", *, more: str = "") -> Generator[Busy]:
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools" / "busy.yaml").write_text(TOOLS + more, "utf-8")
    (root / "busy_tools.py").write_text(MODULE, "utf-8")
    (root / "plugins" / "plugged").mkdir(parents=True, exist_ok=True)
    (root / "plugins" / "plugged" / "manifest.json").write_text(PLUGIN, "utf-8")
    made = asyncio.run(_keys(root))
    with Serving(root, before=before) as server:
        secrets = {who: secret for who, (secret, _) in made.items()}
        yield Busy(server, secrets, {who: id_ for who, (_, id_) in made.items()})
