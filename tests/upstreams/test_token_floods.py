"""How often whoever gives tokens is asked, whatever a server says, and who waits for it."""

import asyncio
import itertools
from typing import Any

import pytest

from tests.house import until
from tests.providers.service import Answer, Seen, answer
from tests.upstreams.guarded import Guarded, opened, problem, upstream
from tests.upstreams.misbehaving import result, text
from toolgate.errors import ProviderUnavailable
from toolgate.net.client import HttpClient

pytestmark = pytest.mark.req("P3")


async def test_a_new_token_that_is_refused_is_not_replaced_by_one_more(
    far: Guarded, client: HttpClient
) -> None:
    it = upstream(far, client)
    await opened(far, it)
    far.good.clear()
    far.refuses = True
    with pytest.raises(ProviderUnavailable, match="does not take our credentials"):
        await it.call("ok", {}, seconds=5)
    assert (len(far.given), len(far.asked("tools/call"))) == (2, 2)
    await it.close()


async def test_a_server_cannot_have_whoever_gives_tokens_flooded(
    far: Guarded, client: HttpClient
) -> None:
    it = upstream(far, client)
    await opened(far, it)
    for _ in range(40):
        far.good.clear()
        far.refuses = True
        with pytest.raises(ProviderUnavailable, match="Nothing ran"):
            await it.call("ok", {}, seconds=5)
    assert 2 < len(far.given) <= 12
    await it.close()


async def test_the_same_scope_is_asked_for_once_and_more_of_them_not_without_end(
    far: Guarded, client: HttpClient
) -> None:
    it = upstream(far, client)
    await opened(far, it)
    for _ in range(5):
        with pytest.raises(ProviderUnavailable, match="does not take our credentials"):
            await it.call("more", {}, seconds=5)
    assert [one.get("scope") for one in far.given] == [None, "admin"]
    counted = itertools.count()
    far.more = lambda: " ".join(f"s{next(counted)}" for _ in range(60))
    for _ in range(5):
        with pytest.raises(ProviderUnavailable):
            await it.call("more", {}, seconds=5)
    assert max(len(one.get("scope", "").split()) for one in far.given) == 61
    await it.close()


async def test_what_is_no_scope_is_not_asked_for(far: Guarded, client: HttpClient) -> None:
    far.scope = f"read a\\b \u00e9 {'x' * 300}"
    assert await problem(upstream(far, client)) == ""
    assert [one["scope"] for one in far.given] == ["read"]


async def test_blanks_in_the_settings_are_no_scope(far: Guarded, client: HttpClient) -> None:
    it = upstream(far, client, scope="  ")
    await opened(far, it)
    with pytest.raises(ProviderUnavailable, match="does not take our credentials"):
        await it.call("more", {}, seconds=5)
    assert far.given[-1]["scope"] == "admin"
    await it.close()


async def test_all_who_wait_are_told_of_one_failure(far: Guarded, client: HttpClient) -> None:
    it = upstream(far, client)
    await opened(far, it)
    far.good.clear()
    far.gives.clear()
    far.says = answer({"error": "invalid_client"}, 401)
    calls = [asyncio.create_task(it.call("ok", {}, seconds=5)) for _ in range(64)]
    await until(lambda: len(far.asked("tools/call")) == 64 and len(far.given) == 2)
    far.gives.set()
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert {str(one) for one in found} == {str(found[0])}
    assert "invalid_client" in str(found[0])
    assert (len(far.given), len(far.asked("tools/call"))) == (2, 64)
    # The control: the next one begins anew, and is answered.
    far.says = None
    assert (await it.call("ok", {}, seconds=5))["content"][0]["text"] == "ok"
    await it.close()


async def test_who_stops_waiting_takes_no_token_from_others(
    far: Guarded, client: HttpClient
) -> None:
    it = upstream(far, client)
    await opened(far, it)
    far.good.clear()
    far.gives.clear()
    first = asyncio.create_task(it.call("ok", {}, seconds=5))
    await until(lambda: len(far.given) == 2)
    second = asyncio.create_task(it.call("ok", {}, seconds=5))
    await until(lambda: len(far.asked("tools/call")) == 2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    far.gives.set()
    assert (await second)["content"][0]["text"] == "ok"
    assert len(far.given) == 2
    await it.close()


async def test_the_rest_of_a_stream_is_had_with_the_next_token(
    far: Guarded, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ran is not lost because a token ended while it did."""
    monkeypatch.setattr("toolgate.upstreams.streamed.LEAST_PAUSE", 0.01)
    monkeypatch.setattr("toolgate.upstreams.streamed._FIRST_PAUSE", 0.01)
    it = upstream(far, client)
    await opened(far, it)
    served, asked = far.server.answers, [0]

    def broken_off(seen: Seen) -> Any:
        if seen.body and seen.json.get("method") == "tools/call":
            asked[0] = seen.json["id"]
            far.good.clear()
            return Answer(200, b"id: 7\ndata: \n\n", "text/event-stream")
        if "last-event-id" in seen.headers and _token_of(seen) in far.good:
            said = b"data: " + result(asked[0], text("the rest")) + b"\n\n"
            return Answer(200, said, "text/event-stream")
        return served(seen)

    far.server.answers = broken_off
    assert (await it.call("ok", {}, seconds=5))["content"][0]["text"] == "the rest"
    assert (len(far.given), len(far.asked("tools/call"))) == (2, 1)
    await it.close()


def _token_of(seen: Seen) -> str:
    return seen.headers.get("authorization", "").removeprefix("Bearer ")


async def test_nothing_is_left_of_a_token_that_was_asked_for_when_it_closes(
    far: Guarded, client: HttpClient
) -> None:
    it = upstream(far, client)
    await opened(far, it)
    far.good.clear()
    far.gives.clear()
    call = asyncio.create_task(it.call("ok", {}, seconds=5))
    await until(lambda: len(far.given) == 2)
    assert asking()
    await it.close()
    with pytest.raises(ProviderUnavailable, match="is closed"):
        await call
    assert not asking()


def asking() -> bool:
    return any("OAuth" in repr(one) for one in asyncio.all_tasks())
