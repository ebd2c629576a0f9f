"""API keys: what a door accepts as proof. Only digests are kept."""

import hashlib
import secrets
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from toolgate.errors import InvalidRequest, Unauthenticated


class Role(StrEnum):
    """What the holder of a key may do: run the house, run one tenant, or call tools."""

    ADMIN = "admin"
    TENANT_ADMIN = "tenant_admin"
    AGENT = "agent"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key on record. An agent's key is bound to its tenant and agent.

    `user`, `persona` and `roles` are whom it stands for beyond that.
    """

    id: str
    digest: str
    role: Role
    tenant: str = ""
    agent: str = ""
    user: str = ""
    persona: str = ""
    roles: tuple[str, ...] = ()
    revoked: bool = False


class Living:
    """Which keys there are, by their ids: gathered once for each mapping, which never changes."""

    def __init__(self) -> None:
        self._gathered: Mapping[str, Key] = MappingProxyType({})
        self._ids: frozenset[str] = frozenset()

    def has(self, id_: str, keys: Mapping[str, Key]) -> bool:
        """Whether this key opens something; `keys` are those that do, by digest."""
        if keys is not self._gathered:
            self._gathered, self._ids = keys, frozenset(key.id for key in keys.values())
        return id_ in self._ids


class FreshKey(msgspec.Struct, frozen=True):
    """A new key and its secret, which is shown once and never stored."""

    key: Key
    secret: str


def make(
    role: Role,
    *,
    tenant: str = "",
    agent: str = "",
    user: str = "",
    persona: str = "",
    roles: tuple[str, ...] = (),
) -> FreshKey:
    """A key with 256 bits of randomness, recognisable by its prefix."""
    secret = f"tg_{role}_{secrets.token_urlsafe(32)}"
    key = Key(
        id=f"key_{secrets.token_hex(6)}",
        digest=digest(secret),
        role=role,
        tenant=tenant,
        agent=agent,
        user=user,
        persona=persona,
        roles=roles,
    )
    return FreshKey(key, secret)


def digest(secret: str) -> str:
    """What is stored and looked up. The secret is random, so a plain digest is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def not_valid() -> Unauthenticated:
    """A missing, an unknown and a revoked key look alike, wherever it is found out."""
    return Unauthenticated("This needs a valid key: send Authorization: Bearer KEY.")


def no_holder(key: Key) -> InvalidRequest:
    """A key for somebody who is not on record would open more than anyone meant."""
    whom = f"tenant {key.tenant!r}"
    if key.agent:
        whom = f"agent {key.agent!r} of {whom}"
    return InvalidRequest(f"There is no {whom} on record; put it there first. No key was made.")
