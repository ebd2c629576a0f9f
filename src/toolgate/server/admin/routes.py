"""`/v1/admin/…`: one table from method and path to what answers it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolgate.errors import PermissionDenied
from toolgate.server.admin import people, rules
from toolgate.server.admin.desk import Desk
from toolgate.server.body import Receive, read_object
from toolgate.server.request import Request
from toolgate.tenancy.keys import Role

Handler = Callable[[Desk], Awaitable[Any]]
PREFIX = "/v1/admin/"
# The first part of the path, how many follow it, and the method.
ROUTES: Mapping[tuple[str, int], Mapping[str, Handler]] = {
    ("tenants", 0): {"GET": people.list_tenants},
    ("tenants", 1): {"PUT": people.put_tenant},
    ("agents", 0): {"GET": people.list_agents},
    ("agents", 1): {"PUT": people.put_agent, "DELETE": people.remove_agent},
    ("flags", 0): {"GET": people.list_flags, "PUT": people.put_flag},
    ("activations", 0): {"PUT": people.put_activation},
    ("keys", 0): {"GET": people.list_keys, "POST": people.add_key},
    ("keys", 1): {"DELETE": people.revoke_key},
    ("layers", 0): {"GET": rules.list_layers},
    ("layers", 1): {"PUT": rules.put_layer, "DELETE": rules.remove_layer},
    ("roles", 1): {"PUT": rules.put_role, "DELETE": rules.remove_role},
    ("personas", 0): {"GET": rules.list_personas},
    ("personas", 1): {"PUT": rules.put_persona},
    ("personas", 3): {"PUT": rules.put_restriction},
    ("relations", 0): {"GET": rules.list_relations, "POST": rules.put_relations},
    ("policies", 0): {"GET": rules.list_policies},
    ("policies", 1): {"PUT": rules.put_policy, "DELETE": rules.remove_policy},
    ("audit", 0): {"GET": rules.list_audit},
}


def allowed_methods(parts: tuple[str, ...]) -> tuple[str, ...]:
    """What can be asked of this path; nothing where there is none."""
    return tuple(ROUTES.get((parts[0], len(parts) - 1), {}))


async def administer(
    request: Request, method: str, parts: tuple[str, ...], receive: Receive
) -> Any:
    """Answer a request whose path and method are in the table."""
    if request.key.role not in {Role.ADMIN, Role.TENANT_ADMIN}:
        raise PermissionDenied("This is for an admin's key.", phase="door", reason="the key's role")
    handler = ROUTES[parts[0], len(parts) - 1][method]
    body = await read_object(receive) if method in {"PUT", "POST"} else {}
    return await handler(Desk(request, parts[1:], body))
