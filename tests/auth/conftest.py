"""A house with one tenant, an issuer, and the door between them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from joserfc.jwk import RSAKey

from tests.auth.issuer import AUDIENCE, Issuer, issuing, rsa
from tests.house import open_gate
from toolgate import Toolgate
from toolgate.errors import InsufficientScope, Unauthenticated
from toolgate.server.auth import Door
from toolgate.server.tokens import Tokens, accepted
from toolgate.settings.auth import Auth
from toolgate.tenancy.keys import Key


class Entrance(NamedTuple):
    gate: Toolgate
    issuer: Issuer
    door: Door
    tokens: Tokens

    async def let_in(self, token: str) -> Key | None:
        """Who is let in with this; nobody is `None`."""
        try:
            return await self.door.verified(f"Bearer {token}".encode())
        except (InsufficientScope, Unauthenticated):
            return None


Opening = Callable[..., AbstractAsyncContextManager[Entrance]]


@pytest.fixture(scope="session")
def issuers_key() -> RSAKey:
    return rsa("one")


@pytest.fixture(scope="session")
def strangers_key() -> RSAKey:
    return rsa("one")


@pytest.fixture
def opened(tmp_path: Path, issuers_key: RSAKey) -> Opening:
    """A door that takes the issuer's tokens; what is given stands in `[auth]`."""

    @asynccontextmanager
    async def open_(**more: Any) -> AsyncGenerator[Entrance]:
        async with issuing(issuers_key) as issuer, open_gate(tmp_path) as gate:
            await gate.tenancy.set_agent("acme", "billing")
            auth = Auth(issuer=issuer.url, audience=AUDIENCE, **more)
            async with accepted(auth, "http://127.0.0.1:8700") as tokens:
                assert tokens is not None
                door = Door(lambda: gate.tenancy.world, tokens=tokens)
                yield Entrance(gate, issuer, door, tokens)

    return open_


@pytest.fixture
async def entrance(opened: Opening) -> AsyncGenerator[Entrance]:
    async with opened() as found:
        yield found
