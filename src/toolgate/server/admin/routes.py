"""`/v1/admin/…`: one table from method and path to what answers it, and who may ask."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from toolgate.errors import InvalidRequest, PermissionDenied
from toolgate.server.admin import keys, ledger, limits, people, records, rules
from toolgate.server.admin.desk import (
    Desk,
    Nothing,
    OfTenant,
    Signed,
    SignedOfTenant,
    beyond,
    reaches_all,
    read,
)
from toolgate.server.body import Receive, read_object
from toolgate.server.request import Request

PREFIX = "/v1/admin/"
_MOST_NAME = 256


class Route(NamedTuple):
    """What answers, the fields it takes, and whether it is only for who runs the whole house."""

    answer: Callable[[Desk, Any], Awaitable[Any]]
    fields: type[msgspec.Struct]
    house: bool = False


# The first part of the path, how many names follow it, and the method.
ROUTES: Mapping[tuple[str, int], Mapping[str, Route]] = {
    ("tenants", 0): {"GET": Route(people.list_tenants, Nothing)},
    ("tenants", 1): {"PUT": Route(limits.put_tenant, limits.Tenant, house=True)},
    ("agents", 0): {"GET": Route(people.list_agents, OfTenant)},
    ("agents", 1): {
        "PUT": Route(people.put_agent, people.Agent),
        "DELETE": Route(people.remove_agent, SignedOfTenant),
    },
    ("flags", 0): {
        "GET": Route(people.list_flags, OfTenant),
        "PUT": Route(people.put_flag, people.Flag),
    },
    ("activations", 0): {"PUT": Route(people.put_activation, people.Activation)},
    ("keys", 0): {
        "GET": Route(keys.list_keys, OfTenant),
        "POST": Route(keys.add_key, keys.NewKey),
    },
    ("keys", 1): {"DELETE": Route(keys.revoke_key, Signed)},
    ("layers", 0): {"GET": Route(rules.list_layers, OfTenant)},
    ("layers", 1): {
        "PUT": Route(rules.put_layer, rules.NewLayer),
        "DELETE": Route(rules.remove_layer, rules.OldLayer),
    },
    ("roles", 0): {"GET": Route(rules.list_roles, OfTenant)},
    ("roles", 1): {
        "PUT": Route(rules.put_role, rules.NewRole),
        "DELETE": Route(rules.remove_role, SignedOfTenant),
    },
    ("personas", 0): {"GET": Route(rules.list_personas, Nothing)},
    ("personas", 1): {"PUT": Route(rules.put_persona, rules.Persona, house=True)},
    ("personas", 2): {"PUT": Route(rules.put_restriction, rules.Restriction, house=True)},
    ("relations", 0): {
        "GET": Route(records.list_relations, records.SomeRelations),
        "POST": Route(records.put_relations, records.Relations),
    },
    ("policies", 0): {"GET": Route(records.list_policies, Nothing, house=True)},
    ("policies", 1): {
        "PUT": Route(records.put_policy, records.Module, house=True),
        "DELETE": Route(records.remove_policy, Signed, house=True),
    },
    ("budgets", 0): {
        "GET": Route(limits.list_budgets, OfTenant),
        "PUT": Route(limits.put_budget, limits.Budget, house=True),
    },
    ("limits", 0): {
        "GET": Route(limits.list_limits, OfTenant),
        "PUT": Route(limits.put_limit, limits.Rate, house=True),
    },
    ("usage", 0): {"GET": Route(limits.list_usage, limits.SomeUsage)},
    ("audit", 0): {"GET": Route(records.list_audit, records.SomeRecords)},
    ("calls", 0): {"GET": Route(ledger.list_calls, ledger.SomeCalls)},
    ("calls", 1): {"GET": Route(ledger.show_call, OfTenant)},
    ("calls/settle", 1): {"POST": Route(ledger.settle, ledger.Settled)},
    ("calls/again", 1): {"POST": Route(ledger.again, SignedOfTenant)},
    ("undo", 0): {"POST": Route(ledger.undo, ledger.Back)},
}


def allowed_methods(parts: list[str]) -> tuple[str, ...]:
    """What can be asked of this path; nothing where there is none."""
    return tuple(_found(parts)[0])


async def administer(request: Request, method: str, parts: list[str], receive: Receive) -> Any:
    """Answer a request whose path and method are in the table."""
    if not request.is_admin:
        raise PermissionDenied("This is for an admin's key.", phase="door", reason="the key's role")
    methods, names = _found(parts)
    route = methods[method]
    if route.house and not reaches_all(request):
        raise beyond()
    if any(not name.isprintable() or len(name) > _MOST_NAME for name in names):
        raise InvalidRequest(f"A name in the path has at most {_MOST_NAME} printable characters.")
    fields = dict[str, Any](request.query)
    if method != "GET":
        fields = _together(fields, await read_object(receive, or_nothing=True))
        await request.confirm()
    given = read(fields, route.fields)
    desk = Desk(request, names, getattr(given, "tenant", ""), getattr(given, "why", ""))
    return await route.answer(desk, given)


def _found(parts: list[str]) -> tuple[Mapping[str, Route], tuple[str, ...]]:
    """What the path leads to, and the names in it."""
    head, *names = parts
    if head == "personas" and len(names) > 1:
        # personas/{id}/tools/{tool}, and a tool's name may hold a slash.
        if len(names) < 3 or names[1] != "tools":
            return {}, ()
        names = [names[0], "/".join(names[2:])]
    if head == "calls" and len(names) == 2:
        # What is done about a call stands behind its id.
        head, names = f"calls/{names[1]}", names[:1]
    return ROUTES.get((head, len(names)), {}), tuple(names)


def _together(query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """A field can stand in either; of two that differ nobody can say which is meant."""
    for name, value in query.items():
        if body.get(name, value) != value:
            raise InvalidRequest(
                f"{name[:60]!r} stands in the query and in the body, and they differ."
            )
    return query | body
