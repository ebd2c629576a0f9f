"""A request for each row of the table. `{words}` stand for what there is, or for what is not."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import quote

RULE = "package toolgate\n"
# What is acme's, and what nobody has.
MISSING: Mapping[str, str] = {
    "tenant": "nobody",
    "tool": "no_such_tool",
    "call": "call_none",
    "group": "no-such-group",
    "approval": "apr_none",
    "key": "key_none",
    "agent": "no-such-agent",
}


class Sample(NamedTuple):
    """Names for the path, then the query, then the body."""

    names: tuple[str, ...] = ()
    query: Mapping[str, str] = {}
    body: Any = None


OF = {"tenant": "{tenant}"}
WHY = {**OF, "why": "because"}
ONE = {"tool": "{tool}", "args": {"text": "x"}}
SAMPLES: Mapping[tuple[str, str], Sample] = {
    ("GET", "/healthz"): Sample(),
    ("GET", "/readyz"): Sample(),
    ("GET", "/metrics"): Sample(),
    ("GET", "/openapi.json"): Sample(),
    ("GET", "/v1/me"): Sample(query=OF),
    ("GET", "/v1/tools"): Sample(query=OF),
    ("GET", "/v1/tools/{name}"): Sample(("{tool}",), OF),
    ("GET", "/v1/tools/{name}/metadata"): Sample(("{tool}",), OF),
    ("GET", "/v1/tools/{name}/explain"): Sample(("{tool}",), OF),
    ("GET", "/v1/unavailable"): Sample(query=OF),
    ("POST", "/v1/call"): Sample(query=OF, body=ONE),
    ("POST", "/v1/batch"): Sample(query=OF, body={"calls": [ONE]}),
    ("POST", "/v1/chain"): Sample(query=OF, body={"steps": [ONE]}),
    ("POST", "/v1/messages"): Sample(
        query=OF, body={"message": '{"tool_name": "{tool}", "tool_args": {"text": "x"}}'}
    ),
    ("GET", "/v1/calls/{id}"): Sample(("{call}",), OF),
    ("GET", "/v1/ledger"): Sample(query={**OF, "turn_group": "{group}"}),
    ("POST", "/v1/undo"): Sample(body={"call_id": "{call}"}),
    ("GET", "/v1/events"): Sample(query=OF),
    ("GET", "/v1/approvals"): Sample(query=OF),
    ("GET", "/v1/approvals/{id}"): Sample(("{approval}",)),
    ("POST", "/v1/approvals/{id}/approve"): Sample(("{approval}",), body={"reason": "y"}),
    ("POST", "/v1/approvals/{id}/deny"): Sample(("{approval}",), body={"reason": "n"}),
    ("GET", "/v1/admin/tools"): Sample(query=OF),
    ("GET", "/v1/admin/tools/{name}"): Sample(("{tool}",)),
    ("GET", "/v1/admin/imports"): Sample(),
    ("PUT", "/v1/admin/imports/{name}"): Sample(
        ("brought",), body={"text": "tools: []", "replace": True}
    ),
    ("GET", "/v1/admin/imports/{name}"): Sample(("brought",)),
    ("DELETE", "/v1/admin/imports/{name}"): Sample(("elsewhere",)),
    ("GET", "/v1/admin/export"): Sample(query=OF),
    ("POST", "/v1/admin/reload"): Sample(body={}),
    ("GET", "/v1/admin/servers"): Sample(),
    ("PUT", "/v1/admin/servers/{name}"): Sample(
        ("there",), body={"url": "https://nowhere.invalid/mcp", "why": "w"}
    ),
    ("GET", "/v1/admin/servers/{name}"): Sample(("there",)),
    ("DELETE", "/v1/admin/servers/{name}"): Sample(("elsewhere",)),
    ("POST", "/v1/admin/servers/{name}/test"): Sample(("there",), body={}),
    ("GET", "/v1/admin/servers/{name}/diff"): Sample(("there",)),
    ("POST", "/v1/admin/servers/{name}/approve"): Sample(
        ("there",), body={"tools": {"{tool}": "sha256:1"}}
    ),
    ("GET", "/v1/admin/plugins"): Sample(),
    ("POST", "/v1/admin/plugins"): Sample(body={}),
    ("GET", "/v1/admin/plugins/{name}"): Sample(("plugged",)),
    ("POST", "/v1/admin/plugins/{name}/approve"): Sample(("plugged",), body={"fingerprint": "1"}),
    ("GET", "/v1/admin/health"): Sample(),
    ("GET", "/v1/admin/tenants"): Sample(),
    ("PUT", "/v1/admin/tenants/{id}"): Sample(("{tenant}",), body={}),
    ("GET", "/v1/admin/agents"): Sample(query=OF),
    ("PUT", "/v1/admin/agents/{id}"): Sample(("{agent}",), body=OF),
    ("DELETE", "/v1/admin/agents/{id}"): Sample(("{agent}",), OF),
    ("GET", "/v1/admin/flags"): Sample(query=OF),
    ("PUT", "/v1/admin/flags"): Sample(body={**OF, "tool": "echo", "enabled": False}),
    ("PUT", "/v1/admin/activations"): Sample(body={**OF, "agent": "{agent}", "tool": "echo"}),
    ("GET", "/v1/admin/keys"): Sample(query=OF),
    ("POST", "/v1/admin/keys"): Sample(body={**OF, "role": "agent", "agent": "{agent}"}),
    ("DELETE", "/v1/admin/keys/{id}"): Sample(("{key}",)),
    ("POST", "/v1/admin/keys/{id}/rotate"): Sample(("{key}",), body={}),
    ("GET", "/v1/admin/layers"): Sample(query=OF),
    ("PUT", "/v1/admin/layers/{name}"): Sample(("narrow",), body={**OF, "deny": ["timestamp"]}),
    ("DELETE", "/v1/admin/layers/{name}"): Sample(("narrow",), OF),
    ("GET", "/v1/admin/roles"): Sample(query=OF),
    ("PUT", "/v1/admin/roles/{role}"): Sample(("clerk",), body={**OF, "permissions": {}}),
    ("DELETE", "/v1/admin/roles/{role}"): Sample(("clerk",), OF),
    ("GET", "/v1/admin/personas"): Sample(),
    ("PUT", "/v1/admin/personas/{id}"): Sample(("boss",), body={"can_add_tools": True}),
    ("PUT", "/v1/admin/personas/{id}/tools/{tool}"): Sample(("boss", "a/b"), body={}),
    ("GET", "/v1/admin/relations"): Sample(query=OF),
    ("POST", "/v1/admin/relations"): Sample(body={**OF, "add": ["tool:x#executor@user:ann"]}),
    ("GET", "/v1/admin/policies"): Sample(),
    ("PUT", "/v1/admin/policies/{name}"): Sample(("mine",), body={"text": RULE}),
    ("DELETE", "/v1/admin/policies/{name}"): Sample(("mine",)),
    ("GET", "/v1/admin/budgets"): Sample(query=OF),
    ("PUT", "/v1/admin/budgets"): Sample(body={**OF, "metric": "money", "most": 9}),
    ("GET", "/v1/admin/limits"): Sample(query=OF),
    ("PUT", "/v1/admin/limits"): Sample(body={**OF, "limit": "9000/second"}),
    ("GET", "/v1/admin/usage"): Sample(query=OF),
    ("GET", "/v1/admin/audit"): Sample(query=OF),
    ("GET", "/v1/admin/audit/anchors"): Sample(query=OF),
    ("POST", "/v1/admin/audit/verify"): Sample(body=OF),
    ("GET", "/v1/admin/audit/export"): Sample(query=OF),
    ("POST", "/v1/admin/replay"): Sample(body={**OF, "files": {"mine.rego": RULE}}),
    ("GET", "/v1/admin/calls"): Sample(query={**OF, "turn_group": "{group}"}),
    ("GET", "/v1/admin/calls/{id}"): Sample(("{call}",), OF),
    ("POST", "/v1/admin/calls/{id}/settle"): Sample(("{call}",), body={**WHY, "happened": True}),
    ("POST", "/v1/admin/calls/{id}/again"): Sample(("{call}",), body=WHY),
    ("GET", "/v1/admin/queue"): Sample(),
    ("GET", "/v1/admin/queue/dead"): Sample(query=OF),
    ("POST", "/v1/admin/queue/{id}/retry"): Sample(("{call}",), body=WHY),
    ("POST", "/v1/admin/queue/discard"): Sample(body={"why": WHY["why"]}),
    ("POST", "/v1/admin/queue/{id}/discard"): Sample(("{call}",), body=WHY),
    ("POST", "/v1/admin/undo"): Sample(body={**WHY, "call_id": "{call}"}),
}


class Asked(NamedTuple):
    """A request, as it is sent."""

    method: str
    path: str
    body: Any


def asked(at: tuple[str, str], words: Mapping[str, str], *, unsaid: bool = False) -> Asked:
    """The sample with these words in it; `unsaid` leaves the tenant out."""
    method, path = at
    names, query, body = SAMPLES[at]
    for name in names:
        path = path.replace(path[path.index("{") : path.index("}") + 1], quote(_put(name, words)))
    said = {name: of for name, of in query.items() if not (unsaid and name == "tenant")}
    if isinstance(body, dict) and unsaid:
        given = cast("dict[str, Any]", body)
        body = {name: of for name, of in given.items() if name != "tenant"}
    text = "&".join(f"{name}={quote(_put(of, words))}" for name, of in said.items())
    return Asked(method, f"{path}?{text}" if text else path, _put(body, words))


def _put(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace("{" + name + "}", word)
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _put(of, words) for name, of in fields.items()}
    if isinstance(value, list):
        return [_put(one, words) for one in cast("list[Any]", value)]
    return value
