"""Who knocks: a bearer key becomes a Caller. What the client claims beyond its key is not read."""

import hmac

from toolgate.call import Caller
from toolgate.tenancy import keys
from toolgate.tenancy.keys import Key
from toolgate.tenancy.world import World

_SCHEME = b"bearer "


def authenticate(header: bytes | None, world: World) -> Key:
    """The key on record. A missing, an unknown and a revoked key look alike."""
    if header is not None and header[:7].lower() == _SCHEME:
        digest = keys.digest(header[7:].strip().decode("latin-1"))
        key = world.keys.get(digest)
        if key is not None and hmac.compare_digest(key.digest, digest):
            return key
    raise keys.not_valid()


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
