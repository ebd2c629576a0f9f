"""The parts of the world, by name, and which of them a change touches.

A store keeps beside each the revision at which it last changed, so that a node reads no more than
what is new.
"""

from collections.abc import Iterable

from toolgate.tenancy.changes import (
    AddKey,
    Change,
    ExpireKey,
    FirstKeys,
    MarkRelations,
    PinTools,
    RemoveAgent,
    RevokeKey,
    SetLayer,
    SetPersona,
    SetPolicyModule,
    SetRateLimit,
    SetRelations,
    SetRestriction,
    SetServer,
    SetToolFile,
    SetToolFlag,
)

EVERYONE = "everyone"
KEYS = "keys"
# Which MCP servers there are, and what of their tools is agreed to.
SERVERS = "servers"
TENANT = "tenant:"
# Not read with the tenant: whoever asks about relations needs to know when they last changed.
RELATIONS = "relations:"


def touched(changes: Iterable[Change]) -> tuple[str, ...]:
    """The parts that these changes make different, each once."""
    return tuple(dict.fromkeys(part for change in changes for part in _parts(change)))


def _parts(change: Change) -> tuple[str, ...]:
    match change:
        case FirstKeys():
            return ()
        case AddKey() | RevokeKey() | ExpireKey():
            return (KEYS,)
        case SetServer() | PinTools():
            return (SERVERS,)
        case SetToolFlag() | SetPersona() | SetRestriction() | SetPolicyModule() | SetToolFile():
            return (EVERYONE,)
        case SetLayer(tenant="") | SetRateLimit(tenant=""):
            return (EVERYONE,)
        case SetRelations() | MarkRelations():
            return (TENANT + change.tenant, RELATIONS + change.tenant)
        case RemoveAgent():
            return (TENANT + change.tenant, KEYS)
        case _:
            return (TENANT + change.tenant,)
