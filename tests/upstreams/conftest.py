"""A client that reaches loopback, and a server that wants tokens."""

from collections.abc import AsyncGenerator

import pytest

from tests.upstreams.guarded import Guarded, guarded
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    made = HttpClient(Guard(["127.0.0.0/8"]))
    yield made
    await made.close()


@pytest.fixture
async def far() -> AsyncGenerator[Guarded]:
    async with guarded() as both:
        yield both
