"""Who there is, at one moment: an immutable snapshot, in parts that are replaced one by one."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from toolgate.spec.tool import RateLimit
from toolgate.tenancy.capsule import EVERYTHING, NOTHING, Capsule
from toolgate.tenancy.keys import Key
from toolgate.tenancy.layer import Layer, LayerKey, Layers
from toolgate.tenancy.persona import UNLISTED, Persona
from toolgate.tenancy.servers import NONE, Servers

# A persona and a tool; empty means all of them together.
RateKey = tuple[str, str]
_NO_RATES: Mapping[RateKey, RateLimit] = MappingProxyType({})
_NO_LAYERS: Mapping[LayerKey, Layer] = MappingProxyType({})


class Everyone(msgspec.Struct, frozen=True, kw_only=True):
    """What holds in every tenant."""

    flags: Mapping[str, bool] = MappingProxyType({})
    layers: Mapping[LayerKey, Layer] = _NO_LAYERS
    personas: Mapping[str, Persona] = MappingProxyType({})
    # Rego modules that are kept in the store, by name.
    policies: Mapping[str, str] = MappingProxyType({})
    # For each tenant that has none of its own.
    rates: Mapping[RateKey, RateLimit] = _NO_RATES


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """What holds in one tenant."""

    flags: Mapping[str, bool] = MappingProxyType({})
    capsules: Mapping[str, Capsule] = MappingProxyType({})
    # Agents that are gone: a name must not be able to do more because its agent was removed.
    removed: frozenset[str] = frozenset()
    layers: Mapping[LayerKey, Layer] = _NO_LAYERS
    # The revision of the last change of its relations, and how fresh to read those kept elsewhere.
    relations: int = 0
    relations_token: str = ""
    # The budget plan, empty for the one that the settings name; and the most of each metric.
    plan: str = ""
    budgets: Mapping[str, int] = MappingProxyType({})
    rates: Mapping[RateKey, RateLimit] = _NO_RATES


NOBODY = Tenant()


class World(msgspec.Struct, frozen=True, kw_only=True):
    """A revision of everything an operator has said about tenants, agents and tools."""

    revision: int = 0
    everyone: Everyone = Everyone()
    tenants: Mapping[str, Tenant] = MappingProxyType({})
    keys: Mapping[str, Key] = MappingProxyType({})
    servers: Servers = NONE

    def tenant(self, name: str) -> Tenant:
        """The tenant's part; one that is not on record has nothing of its own."""
        return self.tenants.get(name, NOBODY)

    def capsule(self, tenant: str, agent: str) -> Capsule:
        """The agent's capsule; one that has none takes what its tenant has, one that was removed
        nothing.
        """
        own = self.tenant(tenant)
        capsule = own.capsules.get(agent)
        if capsule is None:
            return NOTHING if agent in own.removed else EVERYTHING
        return capsule

    def flags(self, tenant: str) -> Mapping[str, bool]:
        """The tenant's own flags."""
        return self.tenant(tenant).flags

    def layers(self, tenant: str = "") -> list[tuple[str, Layers]]:
        """The layers that hold everywhere, then those of each tenant, or of one, by its name."""
        shown = [name for name in sorted(self.tenants) if not tenant or name == tenant]
        own = [(name, self.tenants[name].layers) for name in shown]
        return [("", self.everyone.layers), *own]

    def persona(self, name: str) -> Persona:
        """The persona; one that nobody has spoken of is kept from nothing."""
        return self.everyone.personas.get(name, UNLISTED)
