"""A served house with two tenants, who runs them, and every route of `/v1/admin/`."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.house import open_gate
from tests.server.serving import Answer, Serving
from toolgate import Caller, tool
from toolgate.tenancy.keys import FreshKey, Role

RULE = 'package toolgate\n\nbanned["never"] contains "nobody may" if true\n'
TOOLS = """\
tools:
  - {name: "ns:pay", config: {builtin: timestamp}, effect: pure}
  - {name: a/b, config: {builtin: timestamp}, effect: pure}
  - {name: book, config: {builtin: timestamp}, effect: compensatable, compensation: {tool: unbook}}
  - {name: unbook, config: {builtin: timestamp}, effect: idempotent}
  - name: fail
    config: {builtin: read_output}
    effect: irreversible
    input_schema: {type: object, properties: {reference: {type: string}}}
"""
# Of each of them some are on record before the house is served, enough for every test.
CALLS = {"{unknown}": "lose", "{done}": "book", "{failed}": "fail"}
_STATES = {"{unknown}": "unknown", "{done}": "succeeded", "{failed}": "failed"}


@tool(effect="irreversible")
async def lose() -> None:
    """Nobody sees how it ends."""
    raise ValueError


class Asked(NamedTuple):
    """A request, and what an admin asks before it so that it can be answered."""

    method: str
    path: str
    body: Any = None
    before: tuple[str, str, Any] | None = None
    # Whether it is about one tenant, which it names.
    of_tenant: bool = True
    house: bool = False

    # Whether it only makes the server look again: nothing is written for it.
    looks: bool = False

    @property
    def changes(self) -> bool:
        return self.method != "GET" and not self.looks

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class House(NamedTuple):
    server: Serving
    # admin, own (who runs acme), other (who runs umbrella), agent.
    keys: Mapping[str, FreshKey]

    def ask(self, who: str, asked: Asked, **more: Any) -> Answer:
        secret = self.keys[who].secret if who in self.keys else None
        given: dict[str, Any] = asked.body or {}
        body = asked.body if not more else given | more
        path = asked.path
        for word in CALLS:
            if word in path or (body and body.get("call_id") == word):
                call_id = self.call(word)
                path = path.replace(word, call_id)
                body = body and {k: call_id if v == word else v for k, v in body.items()}
        return self.server.ask(asked.method, f"/v1/admin/{path}", key=secret, body=body)

    def call(self, word: str) -> str:
        """One that is on record in this state."""
        path = f"/v1/admin/calls?tenant=acme&limit=1&tool={CALLS[word]}&state={_STATES[word]}"
        answer = self.server.ask("GET", path, key=self.keys["admin"].secret)
        return answer.body["calls"][0]["call_id"]

    def prepare(self, asked: Asked) -> Answer | None:
        if asked.before is None:
            return None
        answer = self.ask("admin", Asked(*asked.before))
        assert answer.status == 200, answer.text
        return answer


ACME = {"tenant": "acme"}
EXECUTOR = "tool:echo#executor@user:ann"
AGENT = ("PUT", "agents/helper", ACME)
LAYER = ("PUT", "layers/narrow", {**ACME, "deny": ["timestamp"]})
ROLE = ("PUT", "roles/clerk", {**ACME, "permissions": {"web_access": True}})
POLICY = ("PUT", "policies/mine", {"text": RULE})
PLUGIN = '{"schema_version": "1.0", "name": "plugged", "tools": []}'
SERVER = ("PUT", "servers/there", {"url": "https://nowhere.invalid/mcp"})
ROUTES = [
    Asked("GET", "tenants", of_tenant=False),
    Asked("PUT", "tenants/acme", of_tenant=False, house=True),
    Asked("GET", "agents?tenant=acme"),
    Asked(*AGENT[:2], {**ACME, "mode": "listed"}),
    Asked("DELETE", "agents/helper?tenant=acme", before=AGENT),
    Asked("GET", "flags?tenant=acme"),
    Asked("PUT", "flags", {**ACME, "tool": "echo", "enabled": False}),
    Asked("PUT", "activations", {**ACME, "agent": "billing", "tool": "echo"}),
    Asked("GET", "keys?tenant=acme"),
    Asked("POST", "keys", {**ACME, "role": "agent", "agent": "billing", "roles": ["clerk"]}),
    Asked("POST", "keys", {**ACME, "role": "admin"}, house=True),
    Asked("GET", "layers?tenant=acme"),
    Asked(*LAYER),
    Asked("DELETE", "layers/narrow?tenant=acme", before=LAYER),
    Asked("GET", "roles?tenant=acme"),
    Asked(*ROLE),
    Asked("DELETE", "roles/clerk?tenant=acme", before=ROLE),
    Asked("GET", "personas", of_tenant=False),
    Asked("PUT", "personas/boss", {"can_add_tools": True}, of_tenant=False, house=True),
    Asked("PUT", "personas/boss/tools/echo", {"reason": "no"}, of_tenant=False, house=True),
    Asked("GET", "relations?tenant=acme"),
    Asked("POST", "relations", {**ACME, "add": [EXECUTOR]}),
    Asked("GET", "policies", of_tenant=False, house=True),
    Asked("PUT", "policies/mine", {"text": RULE}, of_tenant=False, house=True),
    Asked("DELETE", "policies/mine", before=POLICY, of_tenant=False, house=True),
    Asked("GET", "budgets?tenant=acme"),
    Asked("PUT", "budgets", {**ACME, "metric": "money", "most": 5000}, house=True),
    Asked("GET", "limits?tenant=acme"),
    Asked("PUT", "limits", {**ACME, "limit": "9000/second"}, house=True),
    Asked("GET", "usage?tenant=acme"),
    Asked("GET", "audit?tenant=acme"),
    Asked("GET", "calls?tenant=acme"),
    Asked("GET", "calls/{failed}?tenant=acme"),
    Asked("POST", "calls/{unknown}/settle", {**ACME, "happened": True, "why": "seen"}),
    Asked("POST", "calls/{failed}/again", {**ACME, "why": "mended"}),
    Asked("GET", "queue", house=True),
    Asked("GET", "queue/dead?tenant=acme", of_tenant=True),
    # Nothing is dead here: what it writes is asked in tests/queue.
    Asked("POST", "queue/discard", {}, of_tenant=False, house=True, looks=True),
    Asked("POST", "undo", {**ACME, "call_id": "{done}", "why": "not wanted"}),
    Asked("GET", "tools?tenant=acme"),
    Asked("GET", "tools/ns:pay", of_tenant=False, house=True),
    Asked("GET", "export?tenant=acme"),
    Asked("GET", "servers", of_tenant=False, house=True),
    Asked(*SERVER, of_tenant=False, house=True),
    Asked("POST", "servers/there/test", {}, SERVER, of_tenant=False, house=True, looks=True),
    Asked("GET", "servers/there", before=SERVER, of_tenant=False, house=True),
    Asked("GET", "servers/there/diff", before=SERVER, of_tenant=False, house=True),
    Asked("DELETE", "servers/there", before=SERVER, of_tenant=False, house=True),
    Asked("GET", "plugins", of_tenant=False, house=True),
    Asked("GET", "plugins/plugged", of_tenant=False, house=True),
    Asked("POST", "plugins", {}, of_tenant=False, house=True, looks=True),
    Asked("POST", "reload", {}, of_tenant=False, house=True, looks=True),
    Asked("GET", "health", of_tenant=False, house=True),
]
CHANGES = [asked for asked in ROUTES if asked.changes]


def prepare(root: Path, *, calls: bool = False) -> Mapping[str, FreshKey]:
    """The house before it is served; with `calls`, some are on record."""
    (root / "tools").mkdir()
    (root / "tools" / "names.yaml").write_text(TOOLS, "utf-8")
    (root / "plugins" / "plugged").mkdir(parents=True)
    (root / "plugins" / "plugged" / "manifest.json").write_text(PLUGIN, "utf-8")

    async def fill() -> Mapping[str, FreshKey]:
        async with open_gate(root) as gate:
            tenancy = gate.tenancy
            for tenant in ("acme", "umbrella"):
                await tenancy.set_agent(tenant, "billing")
            gate.add(lose)
            caller = Caller(tenant="acme", agent="billing")
            for name in CALLS.values() if calls else ():
                args = {"reference": "none"} if name == "fail" else {}
                for _ in range(8):
                    await gate.call(name, args, caller=caller)
            return {
                "admin": await tenancy.add_key(Role.ADMIN, tenant="acme"),
                "own": await tenancy.add_key(Role.TENANT_ADMIN, tenant="acme"),
                "other": await tenancy.add_key(Role.TENANT_ADMIN, tenant="umbrella"),
                "agent": await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing"),
            }

    return asyncio.run(fill())
