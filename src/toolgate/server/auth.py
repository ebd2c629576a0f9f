"""Who knocks: a bearer key becomes a Caller. What the client claims beyond its key is not read."""

import hmac

from collections.abc import Callable

from toolgate.call import Caller
from toolgate.tenancy import keys
from toolgate.tenancy.keys import Key
from toolgate.tenancy.world import World

_SCHEME = b"bearer "


class Door:
    """Who stands before it, by the header `Authorization`. Every route asks here, and only here."""

    def __init__(self, world: Callable[[], World]) -> None:
        self._world = world

    def known(self, header: bytes | None) -> Key | None:
        """The key on record; `None` where only a look elsewhere can tell (`verified`).

        A missing, an unknown and a revoked key look alike: `Unauthenticated`.
        """
        if header is not None and header[:7].lower() == _SCHEME:
            digest = keys.digest(header[7:].strip().decode("latin-1"))
            key = self._world().keys.get(digest)
            if key is not None and hmac.compare_digest(key.digest, digest):
                return key
        raise keys.not_valid()

    async def verified(self, header: bytes | None) -> Key:
        """As `known`, with all the time that it takes."""
        key = self.known(header)
        if key is None:
            raise keys.not_valid()
        return key


def caller_of(key: Key) -> Caller:
    """Who the key stands for."""
    return Caller(
        tenant=key.tenant,
        agent=key.agent,
        user=key.user,
        persona=key.persona,
        roles=key.roles,
        key=key.id,
    )
