"""API keys: what a door accepts as proof. Only digests are kept."""

import hashlib
import secrets
from enum import StrEnum

import msgspec

from toolgate.errors import InvalidRequest


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


def no_holder(key: Key) -> InvalidRequest:
    """A key for somebody who is not on record would open more than anyone meant."""
    whom = f"tenant {key.tenant!r}"
    if key.agent:
        whom = f"agent {key.agent!r} of {whom}"
    return InvalidRequest(f"There is no {whom} on record; put it there first. No key was made.")
