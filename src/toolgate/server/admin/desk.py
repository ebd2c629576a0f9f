"""Who asks for a change, and how far their key reaches: the whole house, or one tenant."""

from collections.abc import Callable, Sequence
from enum import EnumMeta
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

import msgspec

from toolgate.errors import InvalidRequest, PermissionDenied
from toolgate.runtime import Runtime
from toolgate.server.cursor import Page, page
from toolgate.server.fields import whole
from toolgate.server.request import Request
from toolgate.tenancy import roster
from toolgate.tenancy.keys import Role
from toolgate.tenancy.names import words
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tenancy.world import World

T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")
_MOST_TOLD = 200


class OfTenant(msgspec.Struct, forbid_unknown_fields=True):
    """A question about one tenant, or about all."""

    tenant: str = ""


class Some(msgspec.Struct, forbid_unknown_fields=True):
    """Some of a list: how many, and from where on."""

    limit: Annotated[str, whole(10_000)] = ""
    cursor: str = ""


class SomeOfTenant(OfTenant):
    """Some of a list of one tenant, or of all."""

    limit: Annotated[str, whole(10_000)] = ""
    cursor: str = ""


class Signed(msgspec.Struct, forbid_unknown_fields=True):
    """A change, with the reason for it."""

    why: str = ""


class SignedOfTenant(Signed):
    """A change in one tenant, or in all."""

    tenant: str = ""


class Desk(NamedTuple):
    """One request of an admin: the names in its path, whose tenant it means, and why."""

    request: Request
    names: tuple[str, ...]
    asked: str
    why: str

    @property
    def gate(self) -> Runtime:
        """The house."""
        return self.request.gate

    @property
    def tenancy(self) -> Tenancy:
        """Where changes are made, in this admin's name and with the reason they give."""
        return self.gate.tenancy.by(self.request.key.id, self.why)

    @property
    def reason(self) -> str:
        """Why, as the audit takes it; `InvalidRequest` for more than a line."""
        return words("reason", self.why)

    @property
    def has_all(self) -> bool:
        """Whether the key reaches every tenant."""
        return reaches_all(self.request)

    @property
    def tenant(self) -> str:
        """The tenant that is meant, or none; a key of one tenant can mean no other."""
        own = self.request.key.tenant
        if self.has_all:
            return self.asked
        if self.asked not in {"", own}:
            raise beyond()
        return own

    def page(self, rows: Sequence[R], key: Callable[[R], Any]) -> Page:
        """One page of rows that are sorted by this key."""
        return page(self.request, rows, key)

    def need_tenant(self) -> str:
        """The tenant that is meant, which has to be named."""
        tenant = self.tenant
        if not tenant:
            raise InvalidRequest("Name the tenant: 'tenant'.")
        return tenant

    async def need_on_record(self, tenant: str, agent: str = "") -> None:
        """`InvalidRequest` where these are not: a typo would be believed to be done."""
        # Another node may have put them there since this one looked.
        await self.gate.tenancy.refresh()
        roster.need(self.gate.tenancy.world, tenant, agent)

    def notes(self, before: World, tenant: str, agent: str = "") -> list[str]:
        """What to know about a change: whom it put on record."""
        return roster.newcomers(before, self.gate.tenancy.world, tenant, agent)


def read(fields: dict[str, Any], kind: type[T]) -> T:
    """What was sent as values, or `InvalidRequest` that says which field is wrong."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        known = ", ".join(kind.__struct_fields__) or "none"
        raise InvalidRequest(
            f"This does not fit: {str(error)[:_MOST_TOLD]}.{_choices(str(error), kind)} "
            f"The fields here: {known}."
        ) from None


def _choices(said: str, kind: type[msgspec.Struct]) -> str:
    """What the field takes whose value is none of those."""
    for field in msgspec.structs.fields(kind):
        # `Mode | None` is a field that may be left out.
        for one in get_args(field.type) or (field.type,):
            if said.endswith(f"`$.{field.name}`") and isinstance(one, EnumMeta):
                return f" It is one of: {', '.join(map(str, one))}."
    return ""


def noted(answer: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """The answer, with notes where there are any."""
    return answer | {"notes": notes} if notes else answer


def reaches_all(request: Request) -> bool:
    """Whether the key is one that runs the whole house."""
    return request.key.role is Role.ADMIN


def beyond() -> PermissionDenied:
    """The same whether what was named is there or not."""
    return PermissionDenied(
        "This key speaks for one tenant; use an admin's key.",
        phase="door",
        reason="the key's role",
    )
