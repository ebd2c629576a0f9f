"""What an operator can change, as values. A directory stores them; a revision counts them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from toolgate.tenancy.capsule import NO_OVERRIDES, Mode
from toolgate.tenancy.keys import Key


class SetToolFlag(msgspec.Struct, frozen=True):
    """Switch a tool on or off for everyone, or take the flag back (`None`)."""

    tool: str
    enabled: bool | None


class SetTenantFlag(msgspec.Struct, frozen=True):
    """Switch a tool on or off for one tenant, whatever holds for everyone."""

    tenant: str
    tool: str
    enabled: bool | None


class AddTenant(msgspec.Struct, frozen=True):
    """A tenant exists. Adding it twice changes nothing."""

    tenant: str


class SetAgent(msgspec.Struct, frozen=True):
    """An agent exists, and where its capsule starts from; `None` leaves one that exists alone."""

    tenant: str
    agent: str
    mode: Mode | None = Mode.ALL


class SetActivation(msgspec.Struct, frozen=True):
    """One tool in an agent's capsule."""

    tenant: str
    agent: str
    tool: str
    enabled: bool = True
    overrides: Mapping[str, Any] = NO_OVERRIDES


class AddKey(msgspec.Struct, frozen=True):
    """A key's digest and what it is bound to, which must be on record."""

    key: Key


class FirstKeys(msgspec.Struct, frozen=True):
    """What comes with it holds only where no key was ever made."""


class RevokeKey(msgspec.Struct, frozen=True):
    """A key opens nothing any more. There must be one."""

    id: str


Change = (
    SetToolFlag
    | SetTenantFlag
    | AddTenant
    | SetAgent
    | SetActivation
    | AddKey
    | FirstKeys
    | RevokeKey
)
