"""Tokens of an issuer: what their claims mean here, and which of them were looked at before."""

import hashlib
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import orjson

from toolgate import clock, outside, upkeep
from toolgate.errors import InsufficientScope, InvalidRequest, SettingsInvalid
from toolgate.identity import plain
from toolgate.server.refusals import Reason, Unfit
from toolgate.settings.auth import Auth
from toolgate.tenancy import names
from toolgate.tenancy.keys import Key, Role

METADATA = "/.well-known/oauth-protected-resource"
_MOST_BYTES = 8_192
_MOST_KEPT = 10_000
_MOST_ID = 200
_MOST_ROLES = 64
_SECOND = 1_000_000_000
Claims = Mapping[str, Any]
# The claims of a token whose signature holds; `Unauthenticated` for any other.
Opened = Callable[[bytes], Awaitable[Claims]]


class Tokens:
    """Those that were verified are known by their digest until they end."""

    def __init__(self, auth: Auth, opened: Opened, base: str) -> None:
        """`base` is this server's own address, as its callers write it."""
        self._auth = auth
        self._opened = opened
        self._kept: dict[str, Key] = {}
        scope = f', scope="{auth.required_scope}"' if auth.required_scope else ""
        self._base = base
        self.challenge = f'Bearer resource_metadata="{base}{METADATA}"{scope}'.encode()

    def lacking(self, roles: Iterable[Role] = ()) -> bytes:
        """What `WWW-Authenticate` says to who has a valid token, and lacks a scope of it.

        Of those that make it one of these `roles`, the one that opens least. Empty where none does.
        """
        named, wanted = self._auth.scopes, frozenset(roles)
        opening = [scope for scope, role in named.items() if role in wanted][-1:]
        if wanted and not opening:
            return b""
        scope = " ".join(dict.fromkeys(one for one in (self._auth.required_scope, *opening) if one))
        where = f'resource_metadata="{self._base}{METADATA}"'
        return f'Bearer error="insufficient_scope", scope="{scope}", {where}'.encode()

    def known(self, digest: str) -> Key | None:
        """What a token stands for that was verified before; whether it has ended is not asked."""
        return self._kept.get(digest)

    def forget(self) -> None:
        """Every token is to be verified anew: the issuer's keys are others now."""
        self._kept.clear()

    async def verify(self, token: bytes) -> Key:
        """What this token stands for, or `Unauthenticated`."""
        if len(token) > _MOST_BYTES:
            raise Unfit(Reason.UNREADABLE, "it is too long")
        claims = await self._opened(token)
        try:
            key = key_of(claims, self._auth)
        except InvalidRequest:
            # A tenant or user that cannot be named here is nobody here.
            raise Unfit(
                Reason.CLAIMS, "it names a tenant, an agent or a user that cannot be"
            ) from None
        if len(self._kept) >= _MOST_KEPT:
            self._make_room()
        self._kept[hashlib.sha256(token).hexdigest()] = key
        return key

    def metadata(self, path: str) -> bytes:
        """What RFC 9728 says of this server, at this path of it."""
        auth = self._auth
        scopes = [scope for scope in (auth.required_scope, *auth.scopes) if scope]
        return orjson.dumps(
            {
                "resource": self._base + path,
                "authorization_servers": [auth.issuer],
                "bearer_methods_supported": ["header"],
                "resource_name": "toolgate",
                **({"scopes_supported": scopes} if scopes else {}),
            }
        )

    def _make_room(self) -> None:
        now_ns = clock.unix_ns()
        self._kept = {digest: key for digest, key in self._kept.items() if not key.is_over(now_ns)}
        # The oldest go first; whoever still uses one has it verified once more.
        for digest in list(self._kept)[: len(self._kept) - _MOST_KEPT * 9 // 10]:
            del self._kept[digest]


@asynccontextmanager
async def accepted(
    auth: Auth, base: str, allow: Sequence[str] = ()
) -> AsyncGenerator[Tokens | None]:
    """The tokens that the settings name, with the issuer's keys looked at again and again.

    `allow` are the places of private networks that its metadata may lead to.
    """
    if not auth.issuer:
        yield None
        return
    try:
        from toolgate.server.jwks import Jwks  # noqa: PLC0415  its library is an extra
    except ImportError:
        raise SettingsInvalid(
            ["auth.issuer: tokens need the library that reads them: make install EXTRAS=jwt"]
        ) from None
    async with AsyncExitStack() as stack:
        fetching = outside.fetching(auth.issuer, auth.jwks_url, allow=allow)
        jwks = Jwks(auth, await stack.enter_async_context(fetching))
        tokens = Tokens(auth, jwks.opened, base)
        jwks.on_change = tokens.forget
        upkeep.keep_doing(jwks.keep_looking(), stack)
        yield tokens


def key_of(claims: Claims, auth: Auth) -> Key:
    """Whom the claims name; `Unauthenticated` where they are not for us, or not now."""
    audience = claims.get("aud")
    meant = _listed(audience) if isinstance(audience, list) else [audience]
    if claims.get("iss") != auth.issuer:
        raise Unfit(Reason.ISSUER, "another issuer")
    if auth.audience not in meant:
        raise Unfit(Reason.AUDIENCE, "another audience: auth.audience is not in aud")
    expires_ns = _timely(claims, auth)
    scopes = _scopes(claims)
    if auth.required_scope and auth.required_scope not in scopes:
        raise InsufficientScope(auth.required_scope)
    role = Role(next((role for scope, role in auth.scopes.items() if scope in scopes), Role.AGENT))
    tenant = plain("tenant", _text(claims, auth.tenant_claim))
    # Only an agent's token names one; any other speaks for its tenant.
    agent = plain("agent", _text(claims, auth.agent_claim)) if role is Role.AGENT else ""
    user = names.user(_text(claims, auth.user_claim))
    persona = _found(claims, auth.persona_claim) if auth.persona_claim else None
    roles = _found(claims, auth.roles_claim) if auth.roles_claim else None
    return Key(
        id=_id(tenant, agent, user),
        digest="",
        role=role,
        tenant=tenant,
        agent=agent,
        user=user,
        persona="" if persona is None else names.label("persona", persona),
        roles=() if roles is None else _roles(roles),
        expires_ns=expires_ns,
        issuer=auth.issuer,
    )


def _timely(claims: Claims, auth: Auth) -> int:
    """When the token ends; it needs an end, and to have begun."""
    now = clock.unix_ns() / _SECOND
    ends = _number(claims, "exp")
    if ends is None or now >= ends + auth.leeway:
        raise Unfit(Reason.TIME, "it has ended, or names no end")
    for begins in ("nbf", "iat"):
        moment = _number(claims, begins)
        if moment is not None and moment > now + auth.leeway:
            raise Unfit(Reason.TIME, "it has not begun yet")
    return round((ends + auth.leeway) * _SECOND)


def _number(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unfit(Reason.TIME)
    # Beyond that no store can hold it, and nobody means it.
    if not math.isfinite(value) or not 0 <= value < 2**33:
        raise Unfit(Reason.TIME)
    return value


def _found(claims: Claims, name: str) -> Any:
    """A claim by its name, or by its path: `realm_access.roles`."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = cast("Claims", value).get(part)
    return value


def _text(claims: Claims, name: str) -> str:
    value = _found(claims, name)
    if not isinstance(value, str):
        raise Unfit(Reason.CLAIMS, f"it has no claim {name!r} that is a text")
    return value


def _scopes(claims: Claims) -> frozenset[str]:
    """`scope` as one text, or `scp`, which some issuers write as a list."""
    found: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        found.update(value.split() if isinstance(value, str) else _listed(value))
    return frozenset(found)


def _roles(value: Any) -> tuple[str, ...]:
    listed = value.split() if isinstance(value, str) else _listed(value)
    if len(listed) > _MOST_ROLES:
        raise Unfit(Reason.CLAIMS)
    return names.labels("role", listed)


def _listed(value: Any) -> list[str]:
    if not isinstance(value, list):
        return []
    return [one for one in cast("Iterable[Any]", value) if isinstance(one, str)]


def _id(tenant: str, agent: str, user: str) -> str:
    """What stands on record for who did something: the same for every token of the same holder."""
    whole = f"jwt:{tenant}/{agent}/{user}"
    if len(whole) <= _MOST_ID:
        return whole
    return f"jwt:{hashlib.sha256(whole.encode()).hexdigest()[:32]}"
