"""`/v1/admin/…`: one table from method and path to what answers it, and who may ask."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.server import rights
from toolgate.server.admin import (
    health,
    imports,
    keys,
    ledger,
    limits,
    people,
    plugins,
    proof,
    queue,
    records,
    replay,
    rules,
    servers,
    tools,
)
from toolgate.server.admin.desk import (
    Desk,
    OfTenant,
    Signed,
    SignedOfTenant,
    Some,
    SomeOfTenant,
    read,
)
from toolgate.server.body import MAX_BYTES
from toolgate.server.fields import Nothing
from toolgate.server.request import Request
from toolgate.server.rights import Right
from toolgate.tenancy.keys import Role

PREFIX = "/v1/admin/"
_MOST_NAME = 256
# What is done about calls, and lists that are not for everybody who may look.
_SETTLED = frozenset({"calls/settle", "calls/again", "queue/retry", "queue/discard", "undo"})
_SECRETS = frozenset({"keys"})
# What takes more words than an address has room for, and changes nothing.
_QUESTIONS = frozenset({"audit/verify"})
# What changes and lists can be refused with.
CODES = (
    "permission_denied",
    "call_not_found",
    "tool_not_found",
    "in_progress",
    "invalid_specs",
    "name_clash",
    "invalid_policy",
    "policy_unavailable",
    "relations_unavailable",
    "store_unavailable",
)


class Route(NamedTuple):
    """What answers, the fields it takes, and whether it is only for who runs the whole house."""

    answer: Callable[[Desk, Any], Awaitable[Any]]
    fields: type[msgspec.Struct]
    house: bool = False
    # So many bytes of a body are read.
    most: int = MAX_BYTES


# The first part of the path, how many names follow it, and the method.
ROUTES: Mapping[tuple[str, int], Mapping[str, Route]] = {
    ("tenants", 0): {"GET": Route(people.list_tenants, Some)},
    ("tenants", 1): {"PUT": Route(limits.put_tenant, limits.Tenant, house=True)},
    ("agents", 0): {"GET": Route(people.list_agents, SomeOfTenant)},
    ("agents", 1): {
        "PUT": Route(people.put_agent, people.Agent),
        "DELETE": Route(people.remove_agent, SignedOfTenant),
    },
    ("flags", 0): {
        "GET": Route(people.list_flags, SomeOfTenant),
        "PUT": Route(people.put_flag, people.Flag),
    },
    ("activations", 0): {"PUT": Route(people.put_activation, people.Activation)},
    ("keys", 0): {
        "GET": Route(keys.list_keys, SomeOfTenant),
        "POST": Route(keys.add_key, keys.NewKey),
    },
    ("keys", 1): {"DELETE": Route(keys.revoke_key, keys.Revoking)},
    ("keys/rotate", 1): {"POST": Route(keys.rotate_key, keys.Rotated)},
    ("layers", 0): {"GET": Route(rules.list_layers, SomeOfTenant)},
    ("layers", 1): {
        "PUT": Route(rules.put_layer, rules.NewLayer),
        "DELETE": Route(rules.remove_layer, rules.OldLayer),
    },
    ("roles", 0): {"GET": Route(rules.list_roles, SomeOfTenant)},
    ("roles", 1): {
        "PUT": Route(rules.put_role, rules.NewRole),
        "DELETE": Route(rules.remove_role, SignedOfTenant),
    },
    ("personas", 0): {"GET": Route(rules.list_personas, Some)},
    ("personas", 1): {"PUT": Route(rules.put_persona, rules.Persona, house=True)},
    ("personas", 2): {"PUT": Route(rules.put_restriction, rules.Restriction, house=True)},
    ("relations", 0): {
        "GET": Route(records.list_relations, SomeOfTenant),
        "POST": Route(records.put_relations, records.Relations),
    },
    ("policies", 0): {"GET": Route(records.list_policies, Nothing, house=True)},
    ("policies", 1): {
        "PUT": Route(records.put_policy, records.Module, house=True),
        "DELETE": Route(records.remove_policy, Signed, house=True),
    },
    ("budgets", 0): {
        "GET": Route(limits.list_budgets, SomeOfTenant),
        "PUT": Route(limits.put_budget, limits.Budget, house=True),
    },
    ("limits", 0): {
        "GET": Route(limits.list_limits, SomeOfTenant),
        "PUT": Route(limits.put_limit, limits.Rate, house=True),
    },
    ("usage", 0): {"GET": Route(limits.list_usage, limits.SomeUsage)},
    ("audit", 0): {"GET": Route(records.list_audit, records.SomeRecords)},
    ("audit/anchors", 0): {"GET": Route(proof.list_anchors, OfTenant)},
    ("audit/verify", 0): {"POST": Route(proof.verify, proof.Kept)},
    ("audit/export", 0): {"GET": Route(proof.export, proof.SomeLines)},
    ("replay", 0): {"POST": Route(replay.replay_decisions, replay.Draft, house=True)},
    ("calls", 0): {"GET": Route(ledger.list_calls, ledger.SomeCalls)},
    ("calls", 1): {"GET": Route(ledger.show_call, OfTenant)},
    ("calls/settle", 1): {"POST": Route(ledger.settle, ledger.Settled)},
    ("calls/again", 1): {"POST": Route(ledger.again, SignedOfTenant)},
    ("queue", 0): {"GET": Route(queue.show_queue, Nothing, house=True)},
    ("queue/dead", 0): {"GET": Route(queue.list_dead, queue.SomeDead)},
    ("queue/retry", 1): {"POST": Route(queue.retry, SignedOfTenant)},
    ("queue/discard", 0): {"POST": Route(queue.discard_unreadable, Signed, house=True)},
    ("queue/discard", 1): {"POST": Route(queue.discard, SignedOfTenant)},
    ("undo", 0): {"POST": Route(ledger.undo, ledger.Back)},
    ("tools", 0): {"GET": Route(tools.list_tools, tools.SomeTools)},
    ("tools", 1): {"GET": Route(tools.show_tool, Nothing, house=True)},
    ("imports", 0): {"GET": Route(imports.list_imports, Nothing, house=True)},
    ("imports", 1): {
        "GET": Route(imports.show_import, Nothing, house=True),
        "PUT": Route(imports.put_import, imports.NewImport, house=True, most=imports.MOST_BODY),
        "DELETE": Route(imports.remove_import, Signed, house=True),
    },
    ("export", 0): {"GET": Route(tools.export_tools, tools.Exported)},
    ("servers", 0): {"GET": Route(servers.list_servers, Nothing, house=True)},
    ("servers", 1): {
        "GET": Route(servers.show_server, Nothing, house=True),
        "PUT": Route(servers.put_server, servers.NewServer, house=True),
        "DELETE": Route(servers.remove_server, Signed, house=True),
    },
    ("servers/test", 1): {"POST": Route(servers.try_server, Signed, house=True)},
    ("servers/diff", 1): {"GET": Route(servers.show_waiting, Nothing, house=True)},
    ("servers/approve", 1): {"POST": Route(servers.approve_tools, servers.Approved, house=True)},
    ("plugins", 0): {
        "GET": Route(plugins.list_plugins, Nothing, house=True),
        "POST": Route(plugins.reload_plugins, Signed, house=True),
    },
    ("plugins", 1): {"GET": Route(plugins.show_plugin, Nothing, house=True)},
    ("plugins/approve", 1): {
        "POST": Route(plugins.approve_plugin, plugins.AgreedPlugin, house=True)
    },
    ("reload", 0): {"POST": Route(tools.reload, Signed, house=True)},
    ("health", 0): {"GET": Route(health.show_health, Nothing, house=True)},
}


def template(head: str, names: int) -> str:
    """The path of a row, as it is published."""
    match head, names:
        case "personas", 2:
            return PREFIX + "personas/{id}/tools/{+tool}"
        case "tools", 1:
            return PREFIX + "tools/{+name}"
        case "policies", 1:
            return PREFIX + "policies/{name}"
        case _, 1 if head.partition("/")[0] in {"servers", "plugins", "imports"}:
            first, *verb = head.split("/")
            return "/".join([PREFIX + first, "{name}", *verb])
        case "layers", 1:
            return PREFIX + "layers/{name}"
        case "roles", 1:
            return PREFIX + "roles/{role}"
        case _, 0:
            return PREFIX + head
        case _:
            # What is done about a call stands behind its id.
            first, *verb = head.split("/")
            return "/".join([PREFIX + first, "{id}", *verb])


def summary(route: Route) -> str:
    """What it is for, by the words behind its address."""
    said = " ".join((inspect.getdoc(route.answer) or "").split())
    return said.rpartition("`: ")[2].replace("`", "").removesuffix(".") + "."


def roles(head: str, method: str, route: Route) -> frozenset[Role]:
    """Whose keys may ask."""
    if route.house:
        return rights.roles(Right.HOUSE)
    if head in _SETTLED and method != "GET":
        return rights.roles(Right.SETTLE)
    is_open = (method == "GET" and head not in _SECRETS) or head in _QUESTIONS
    return rights.roles(Right.LOOK if is_open else Right.RULE)


def answer(method: str, route: Route) -> Callable[[Request], Awaitable[Any]]:
    """What answers a request of this row."""

    async def answered(request: Request) -> Any:
        return await administer(request, method, route)

    return answered


async def administer(request: Request, method: str, route: Route) -> Any:
    """Answer a request of this row."""
    names = request.names
    if any(not name.isprintable() or len(name) > _MOST_NAME for name in names):
        raise InvalidRequest(f"A name in the path has at most {_MOST_NAME} printable characters.")
    fields = dict[str, Any](request.query)
    if method != "GET":
        fields = _together(fields, await request.body(or_nothing=True, most=route.most))
        await request.confirm()
    given = read(fields, route.fields)
    desk = Desk(request, names, getattr(given, "tenant", ""), getattr(given, "why", ""))
    return await route.answer(desk, given)


def _together(query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """A field can stand in either; of two that differ nobody can say which is meant."""
    for name, value in query.items():
        if body.get(name, value) != value:
            raise InvalidRequest(
                f"{name[:60]!r} stands in the query and in the body, and they differ."
            )
    return query | body
