"""API keys: what a door accepts as proof. Only digests are kept."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from toolgate import clock
from toolgate.errors import InvalidRequest, Unauthenticated


class Role(StrEnum):
    """What the holder of a key may do; `toolgate.server.rights` says what each opens.

    Run the house, run one tenant, look after what its agents did, decide what they ask, or call
    tools.
    """

    ADMIN = "admin"
    TENANT_ADMIN = "tenant_admin"
    OPERATOR = "operator"
    APPROVER = "approver"
    AGENT = "agent"


# Who calls no tools speaks for a tenant, and for none of its agents. An admin may have one.
WITHOUT_AGENT = frozenset({Role.TENANT_ADMIN, Role.OPERATOR, Role.APPROVER})


class Key(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A key on record. An agent's key is bound to its tenant and agent.

    `user`, `persona` and `roles` are whom it stands for beyond that. `issuer` is who made it, where
    it is a token that somebody else signed: nothing of such a one is kept here.
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
    created_ns: int = 0
    # From then on it opens nothing; 0: it has no end.
    expires_ns: int = 0
    issuer: str = ""

    def is_over(self, now_ns: int) -> bool:
        """Whether its time is up."""
        return 0 < self.expires_ns <= now_ns


class Living:
    """Which keys there are, by their ids: gathered once for each mapping, which never changes."""

    def __init__(self) -> None:
        self._gathered: Mapping[str, Key] = MappingProxyType({})
        self._ends: Mapping[str, int] = MappingProxyType({})

    def end_ns(self, id_: str, keys: Mapping[str, Key]) -> int | None:
        """Until when this key opens something: 0 where it has no end, `None` where it is over.

        `keys` are those on record, by digest.
        """
        if keys is not self._gathered:
            self._gathered = keys
            self._ends = {key.id: key.expires_ns for key in keys.values()}
        end = self._ends.get(id_)
        return None if end and end <= clock.unix_ns() else end


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
    expires_ns: int = 0,
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
        # As a store keeps it.
        created_ns=clock.unix_ns() // 1_000 * 1_000,
        expires_ns=expires_ns,
    )
    return FreshKey(key, secret)


def renewed(old: Key, expires_ns: int) -> FreshKey:
    """Another secret for the same holder."""
    return make(
        old.role,
        tenant=old.tenant,
        agent=old.agent,
        user=old.user,
        persona=old.persona,
        roles=old.roles,
        expires_ns=expires_ns,
    )


def digest(secret: str) -> str:
    """What is stored and looked up. The secret is random, so a plain digest is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def not_valid() -> Unauthenticated:
    """A missing, an unknown, a revoked and an expired key look alike, wherever it is found out."""
    return Unauthenticated(
        "This needs a valid key: send Authorization: Bearer KEY, or give it to connect()."
    )


def need_another_admin(gone: str, held: Iterable[Key]) -> None:
    """`InvalidRequest` where this is the last key of an admin that opens anything."""
    now_ns = clock.unix_ns()
    admins = {key.id for key in held if key.role is Role.ADMIN and not key.is_over(now_ns)}
    if admins == {gone}:
        raise InvalidRequest(
            f"{gone} is the last key of an admin: make another first (toolgate keys add --role "
            "admin --tenant NAME), or force it (--force, or force=true over HTTP). Nothing was "
            "revoked."
        )


def no_holder(key: Key) -> InvalidRequest:
    """A key for somebody who is not on record would open more than anyone meant."""
    whom, kind = f"tenant {key.tenant!r}", "tenants"
    if key.agent:
        whom, kind = f"agent {key.agent!r} of {whom}", "agents"
    return InvalidRequest(
        f"There is no {whom} on record; no key was made. Put it there first: toolgate keys add "
        f"does so with --create; over HTTP, PUT /v1/admin/{kind}/NAME."
    )
