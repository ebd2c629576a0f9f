"""Who asks for a change, and how far their key reaches: the whole house, or one tenant."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolgate.errors import InvalidRequest, PermissionDenied
from toolgate.runtime import Runtime
from toolgate.server.request import Request
from toolgate.tenancy.keys import Role
from toolgate.tenancy.tenancy import Tenancy

T = TypeVar("T")
_MOST_WHY = 500


class Desk(NamedTuple):
    """One request of an admin: what was asked, with the parts of its path and its body."""

    request: Request
    parts: tuple[str, ...]
    body: Mapping[str, Any]

    @property
    def gate(self) -> Runtime:
        """The house."""
        return self.request.gate

    @property
    def tenancy(self) -> Tenancy:
        """Where changes are made, in this admin's name and with the reason they give."""
        why = self.body.get("why", self.request.query.get("why", ""))
        if not isinstance(why, str) or len(why) > _MOST_WHY:
            raise InvalidRequest(f"'why' is a text of at most {_MOST_WHY} characters.")
        return self.gate.tenancy.by(self.request.key.id, why)

    @property
    def tenant(self) -> str:
        """The tenant that is meant; a key of one tenant can mean no other."""
        own = self.request.key.tenant
        asked = self.body.get("tenant", self.request.query.get("tenant", ""))
        if not isinstance(asked, str):
            raise InvalidRequest("'tenant' is a text.")
        if self.request.key.role is Role.ADMIN:
            return asked
        if asked and asked != own:
            raise _beyond()
        return own

    def need_tenant(self) -> str:
        """The tenant that is meant, which has to be named."""
        if not self.tenant:
            raise InvalidRequest("Name the tenant: 'tenant'.")
        return self.tenant

    def need_all(self) -> None:
        """What holds in every tenant is for the keys that reach every tenant."""
        if self.request.key.role is not Role.ADMIN:
            raise _beyond()

    def read(self, kind: type[T]) -> T:
        """The body as values, or `InvalidRequest` that says which field is wrong."""
        fields = {name: value for name, value in self.body.items() if name != "why"}
        try:
            return msgspec.convert(fields, kind)
        except msgspec.ValidationError as error:
            raise InvalidRequest(f"The body does not fit: {error}.") from None


def _beyond() -> PermissionDenied:
    return PermissionDenied(
        "This key speaks for one tenant; use an admin's key.",
        phase="door",
        reason="the key's role",
    )
