"""How much of Composio's answers is believed."""

from typing import Any

import httpx
import pytest

from tests.late import Late, needs
from toolgate.providers.composio import client

needs("composio_client", "an extra")
failures: Any = Late("toolgate.providers.composio.failures")
pytestmark = pytest.mark.req("P2")


@pytest.mark.parametrize(
    ("said", "seconds"), [("7", 7), ("9" * 400, 1), ("99999", 3_600), ("", 1), ("-1", 1)]
)
def test_a_wait_is_one_that_anybody_would_wait(said: str, seconds: float) -> None:
    assert failures._seconds(said) == seconds


@pytest.mark.parametrize(("size", "is_taken"), [(1_000, True), (1_001, False)])
def test_an_answer_has_an_end(
    monkeypatch: pytest.MonkeyPatch, size: int, *, is_taken: bool
) -> None:
    monkeypatch.setattr(client, "_MOST_BYTES", 1_000)
    response = httpx.Response(200, stream=httpx.ByteStream(b"x" * size))
    client._bound(response)  # pyright: ignore[reportPrivateUsage]
    if is_taken:
        assert len(response.read()) == size
        return
    with pytest.raises(client.NoAnswer):
        response.read()
