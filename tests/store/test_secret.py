"""What the house signs by is made once, whoever comes first, and is the same afterwards."""

import asyncio

import pytest

from toolgate.store.database import Database
from toolgate.store.secret import house_secret

pytestmark = pytest.mark.req("V1")


async def test_everybody_is_given_the_same(database: Database) -> None:
    found = await asyncio.gather(*(house_secret(database, "doors") for _ in range(8)))
    assert len(set(found)) == 1
    assert len(found[0]) == 32
    assert await house_secret(database, "doors") == found[0]
    assert await house_secret(database, "other") != found[0]
