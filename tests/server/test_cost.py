"""What a body that was made to hurt costs until it is refused, at every door (CASES 106)."""

import time
from collections.abc import AsyncGenerator

import pytest

from tests.server.test_host import agent_key, asgi
from tests.server.test_hostile import HOSTILE
from toolgate import Toolgate
from toolgate.server import body
from toolgate.server.app import App
from toolgate.server.doors import doors
from toolgate.settings.settings import Settings

pytestmark = pytest.mark.req("V2", "X5")
MOST = 0.1
PATHS = ("/v1/call", "/mcp")
COSTLY = "a million names"


@pytest.fixture
async def app(gate: Toolgate) -> AsyncGenerator[App]:
    async with doors(gate, Settings()) as served:
        yield served


async def cost(app: App, path: str, secret: str, raw: bytes) -> tuple[int, float]:
    """The status, and seconds of this thread's processor: those of a machine that is busy elsewhere
    do not count.
    """
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {secret}".encode())]
    before = time.thread_time()
    status, _ = await asgi(app, "POST", path, headers, raw)
    return status, time.thread_time() - before


@pytest.mark.parametrize("path", PATHS)
async def test_a_body_that_was_made_to_hurt_is_refused_at_little_cost(
    gate: Toolgate, app: App, path: str
) -> None:
    secret = (await agent_key(gate)).secret
    for kind, raw in HOSTILE.items():
        tries = [await cost(app, path, secret, raw) for _ in range(3)]
        assert {status for status, _ in tries} == {400}, kind
        # What else this process does meanwhile can only add.
        assert min(seconds for _, seconds in tries) < MOST, kind


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_bound_it_would_cost_more(
    gate: Toolgate, app: App, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "MAX_BYTES", 1 << 30)
    secret = (await agent_key(gate)).secret
    _, seconds = await cost(app, path, secret, HOSTILE[COSTLY])
    assert seconds > MOST, "the guard is what the test above stands on"
