"""Who there is, at one moment: flags, capsules and keys in an immutable snapshot."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from toolgate.tenancy.capsule import EVERYTHING, Capsule
from toolgate.tenancy.keys import Key

_NOTHING: Mapping[str, bool] = MappingProxyType({})


class World(msgspec.Struct, frozen=True, kw_only=True):
    """A revision of everything an operator has said about tenants, agents and tools."""

    revision: int = 0
    tenants: frozenset[str] = frozenset()
    tool_flags: Mapping[str, bool] = MappingProxyType({})
    tenant_flags: Mapping[str, Mapping[str, bool]] = MappingProxyType({})
    capsules: Mapping[tuple[str, str], Capsule] = MappingProxyType({})
    keys: Mapping[str, Key] = MappingProxyType({})

    def capsule(self, tenant: str, agent: str) -> Capsule:
        """The agent's capsule; one that has none takes what its tenant has."""
        return self.capsules.get((tenant, agent), EVERYTHING)

    def flags(self, tenant: str) -> Mapping[str, bool]:
        """The tenant's own flags."""
        return self.tenant_flags.get(tenant, _NOTHING)
