"""Who knocks: a key or a token becomes a Caller. What the client claims beyond it is not read."""

import hashlib
import hmac
from collections.abc import Callable, Iterable
from functools import lru_cache

from toolgate import clock
from toolgate.caller import Caller
from toolgate.errors import InsufficientScope, ToolgateError, Unauthenticated
from toolgate.server.refusals import Reason, Refusals, Unfit
from toolgate.server.tokens import Tokens
from toolgate.tenancy import keys
from toolgate.tenancy.keys import Key, Role
from toolgate.tenancy.world import World

_SCHEME = b"bearer "
# A token has two; a key of ours has none.
_DOT = b"."
_MOST_CALLERS = 4_096


class Door:
    """Who stands before it, by the header `Authorization`. Every route asks here, and only here.

    `challenge` is what `WWW-Authenticate` says to whoever is not let in.
    """

    def __init__(
        self,
        world: Callable[[], World],
        *,
        used: Callable[[str], None] = lambda _id: None,
        tokens: Tokens | None = None,
        refused: Callable[[str], None] = lambda _reason: None,
    ) -> None:
        """`used` is told the id of each key that opens; `tokens` knows those of an issuer.

        `refused` is told, in a word, why somebody was not let in.
        """
        self._world = world
        self._used = used
        self._tokens = tokens
        self._refusals = Refusals(refused)
        self.challenge = b"Bearer" if tokens is None else tokens.challenge

    def known(self, header: bytes | None) -> Key | None:
        """The key on record; `None` where only a look elsewhere can tell (`verified`).

        A missing, an unknown, a revoked and an expired one look alike: `Unauthenticated`.
        """
        reason = Reason.NO_KEY
        if header is not None and header[:7].lower() == _SCHEME:
            secret = header[7:].strip()
            digest = hashlib.sha256(secret).hexdigest()
            world = self._world()
            key = world.keys.get(digest)
            if key is not None:
                if hmac.compare_digest(key.digest, digest) and not (
                    key.expires_ns and key.is_over(clock.unix_ns())
                ):
                    self._used(key.id)
                    return key
                reason = Reason.EXPIRED_KEY
            elif self._tokens is not None and _DOT in secret:
                key = self._tokens.known(digest)
                if key is None:
                    return None
                if not is_on_record(key, world):
                    reason = Reason.HOLDER
                elif key.is_over(clock.unix_ns()):
                    reason = Reason.TIME
                else:
                    return key
            else:
                reason = Reason.UNKNOWN_KEY
        self._refusals.note(reason)
        raise keys.not_valid()

    async def verified(self, header: bytes | None) -> Key:
        """As `known`, with all the time that it takes."""
        key = self.known(header)
        if key is None and self._tokens is not None and header is not None:
            try:
                key = await self._tokens.verify(header[7:].strip())
                _need_on_record(key, self._world())
            except Unfit as error:
                self._refusals.tell(error.reason, error.why)
                raise
            except InsufficientScope:
                why = "it lacks the scope that auth.required_scope names"
                self._refusals.tell(Reason.SCOPE, why)
                raise
        if key is None:
            raise keys.not_valid()
        return key

    def challenge_of(self, error: ToolgateError) -> bytes:
        """What `WWW-Authenticate` says beside this error; nothing where a key would not help."""
        if isinstance(error, Unauthenticated):
            return self.challenge
        if isinstance(error, InsufficientScope) and self._tokens is not None:
            return self._tokens.lacking()
        return b""

    def lacking(self, key: Key, roles: Iterable[Role]) -> bytes:
        """As `challenge_of`, for a token that would need another of its issuer's scopes."""
        return self._tokens.lacking(roles) if key.issuer and self._tokens is not None else b""


def stands(key: Key, world: World) -> bool:
    """Whether what was let in would be let in now, in this world."""
    now_ns = clock.unix_ns()
    if key.issuer:
        return is_on_record(key, world) and not key.is_over(now_ns)
    found = world.keys.get(key.digest)
    return found is not None and not found.is_over(now_ns)


def is_on_record(key: Key, world: World) -> bool:
    """Whether there are the tenant and the agent that a token names."""
    tenant = world.tenants.get(key.tenant)
    return tenant is not None and (not key.agent or key.agent in tenant.capsules)


def _need_on_record(key: Key, world: World) -> None:
    if not is_on_record(key, world):
        raise Unfit(Reason.HOLDER, "its tenant or agent is not on record")


@lru_cache(_MOST_CALLERS)
def caller_of(key: Key) -> Caller:
    """Who the key stands for. The same key is the same caller, whose decisions are remembered."""
    return Caller(
        tenant=key.tenant,
        agent=key.agent,
        user=key.user,
        persona=key.persona,
        roles=key.roles,
        # A token is on no record of ours: it says itself when it ends.
        key="" if key.issuer else key.id,
        until_ns=key.expires_ns if key.issuer else 0,
    )
