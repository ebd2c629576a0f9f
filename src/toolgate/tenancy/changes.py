"""What an operator can change, as values. A directory stores them; a revision counts them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from toolgate.spec.tool import RateLimit
from toolgate.tenancy.capsule import NO_OVERRIDES, Mode, NewerMessages
from toolgate.tenancy.keys import Key
from toolgate.tenancy.layer import Layer
from toolgate.tenancy.relation import Relation
from toolgate.tenancy.servers import Pin


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
    """An agent exists, and where its capsule starts from; `None` leaves one that exists alone.

    One that was removed begins anew.
    """

    tenant: str
    agent: str
    mode: Mode | None = Mode.ALL


class SetNewerMessages(msgspec.Struct, frozen=True):
    """What an agent does about newer messages. There must be one."""

    tenant: str
    agent: str
    newer_messages: NewerMessages


class SetActivation(msgspec.Struct, frozen=True):
    """One tool in an agent's capsule."""

    tenant: str
    agent: str
    tool: str
    enabled: bool = True
    overrides: Mapping[str, Any] = NO_OVERRIDES


class RemoveAgent(msgspec.Struct, frozen=True):
    """An agent is gone, with its capsule and its keys. There must be one.

    Its name may do nothing from then on, until there is such an agent again.
    """

    tenant: str
    agent: str


class SetLayer(msgspec.Struct, frozen=True):
    """A layer under its name, for everybody or for a role (`role` not empty).

    Of one tenant, or of all (`tenant` empty). `None` takes it away.
    """

    name: str
    layer: Layer | None
    role: str = ""
    tenant: str = ""


class SetPersona(msgspec.Struct, frozen=True):
    """Whether a persona may add tools; `None` takes back what was said."""

    persona: str
    can_add_tools: bool | None


class SetRestriction(msgspec.Struct, frozen=True):
    """A persona is kept from a tool, or not any more; `None` takes the row away."""

    persona: str
    tool: str
    allowed: bool | None
    reason: str = ""


class SetRelations(msgspec.Struct, frozen=True):
    """Relations of one tenant: some are there, some are not. Neither has to be new."""

    tenant: str
    add: tuple[Relation, ...] = ()
    remove: tuple[Relation, ...] = ()


class MarkRelations(msgspec.Struct, frozen=True):
    """Relations that are kept elsewhere have changed; the token says how fresh to read them.

    Without a token they are to be changed, or, where it `failed`, nobody knows whether they were.
    """

    tenant: str
    token: str
    add: tuple[Relation, ...] = ()
    remove: tuple[Relation, ...] = ()
    failed: bool = False

    @property
    def outcome(self) -> str:
        """How far it came, where there is no token."""
        return "failed" if self.failed else "intended"


class SetPolicyModule(msgspec.Struct, frozen=True):
    """A Rego module in the store, beside those in files; `None` takes it away."""

    name: str
    text: str | None


class SetToolFile(msgspec.Struct, frozen=True):
    """A tool file in the store, beside those of the settings; `None` takes it away."""

    name: str
    text: str | None


class SetServer(msgspec.Struct, frozen=True):
    """An MCP server in the store, beside those of the settings.

    `None` takes it away, with what was agreed to of its tools.
    """

    name: str
    settings: Mapping[str, Any] | None


class PinTools(msgspec.Struct, frozen=True):
    """What of a server's tools is agreed to, by its own names for them.

    `first`: what it has when it is first seen; it must not have been seen before.
    """

    server: str
    tools: Mapping[str, Pin]
    first: bool = False


class SetPlan(msgspec.Struct, frozen=True):
    """A tenant's budget plan; `None` leaves it to the settings."""

    tenant: str
    plan: str | None


class SetBudget(msgspec.Struct, frozen=True):
    """The most of a metric in a month, in millionths; `None` takes the budget away."""

    tenant: str
    metric: str
    most: int | None


class SetRateLimit(msgspec.Struct, frozen=True):
    """So many calls in a time, of a tenant (empty: of each), a persona, a tool (empty: of all)."""

    tenant: str
    persona: str
    tool: str
    limit: RateLimit | None


class AddKey(msgspec.Struct, frozen=True):
    """A key's digest and what it is bound to, which must be on record."""

    key: Key


class FirstKeys(msgspec.Struct, frozen=True):
    """What comes with it holds only where no key was ever made."""


class RevokeKey(msgspec.Struct, frozen=True):
    """A key opens nothing any more. There must be one."""

    id: str


class ExpireKey(msgspec.Struct, frozen=True):
    """A key opens nothing from this moment on, or from an earlier one that it has. There must be
    one that is not revoked.
    """

    id: str
    at_ns: int


Change = (
    SetToolFlag
    | SetTenantFlag
    | AddTenant
    | SetAgent
    | SetNewerMessages
    | SetActivation
    | RemoveAgent
    | SetLayer
    | SetPersona
    | SetRestriction
    | SetRelations
    | MarkRelations
    | SetPolicyModule
    | SetToolFile
    | SetServer
    | PinTools
    | SetPlan
    | SetBudget
    | SetRateLimit
    | AddKey
    | FirstKeys
    | RevokeKey
    | ExpireKey
)
