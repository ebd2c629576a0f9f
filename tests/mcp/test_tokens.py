"""A session goes on with what its holder's token says now."""

from typing import Any

import msgspec
import pytest

from tests.mcp.house import House
from toolgate.server.auth import caller_of
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.legacy import Legacy
from toolgate.server.mcp.rpc import Message
from toolgate.tenancy.keys import Key, Role

pytestmark = pytest.mark.req("V1", "V3")


async def test_a_later_token_counts_as_it_is(house: House) -> None:
    first = Key(
        id="jwt:acme/billing/ann",
        digest="",
        role=Role.AGENT,
        tenant="acme",
        agent="billing",
        user="ann",
        roles=("finance",),
        issuer="https://issuer.example",
        expires_ns=2**62,
    )
    later = msgspec.structs.replace(first, roles=(), expires_ns=2**61)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    legacy = Legacy(Answering(house.gate))
    begin = Message(1, "initialize", {"protocolVersion": "2025-11-25"}, is_request=True)
    await legacy.post(begin, {}, first, caller_of(first), send)
    headers = dict(sent[0]["headers"])
    session = await legacy._session(headers, later, send)  # pyright: ignore[reportPrivateUsage]
    assert session is not None
    assert session.peer.caller.roles == ()
    assert session.peer.caller.until_ns == 2**61
    assert session.peer.caller.session == session.name
    other = msgspec.structs.replace(later, id="jwt:acme/billing/eve", user="eve")
    assert await legacy._session(headers, other, send) is None  # pyright: ignore[reportPrivateUsage]
