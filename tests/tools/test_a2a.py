"""A2A as its own SDK serves it: both versions, messages, tasks and conversations."""

import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import NamedTuple, cast

import pytest
import pytest_asyncio

from tests.net.tripwire import tripwire
from tests.tools import a2a_server
from tests.tools.a2a_server import Clerk
from tests.tools.asking import failed, opened, told
from tests.tools.means import means
from tests.tools.test_web_ways_out import DATA, PUBLIC, known
from toolgate import Caller, Toolgate, clock
from toolgate.call import Call
from toolgate.errors import ToolgateError
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.net.resolver import Resolver
from toolgate.tools.agent.a2a_chat import a2a_chat

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("T3")]
VERSIONS = ("1.0", "0.3")


class Place(NamedTuple):
    gate: Toolgate
    url: str
    clerk: Clerk


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Place]:
    root = tmp_path_factory.mktemp("a2a")
    async with a2a_server.serving() as (url, clerk):
        agent = {"peers": {"clerk": {"url": url}}, "seconds": 3}
        async with opened(root, agent=agent) as gate:
            yield Place(gate, url, clerk)


def _me(version: str, name: str) -> Caller:
    return Caller(tenant="acme", agent=f"{name}-{version[0]}")


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_agent_answers_at_once_or_by_a_task(place: Place, version: str) -> None:
    me, url = _me(version, "talker"), f"{place.url}/{version}"
    quick = await told(place.gate, "a2a_chat", me, agent_url=url, message="quick please")
    assert quick["reply"] == "At once: quick please"
    assert quick["state"] == "message"
    assert quick["agent"] == f"Clerk {version}"
    slow = await told(place.gate, "a2a_chat", me, agent_url=url, message="count")
    assert (slow["reply"], slow["state"], slow["done"]) == ("Result: count", "completed", True)
    failure = await told(place.gate, "a2a_chat", me, agent_url=url, message="fail")
    assert (failure["reply"], failure["state"]) == ("It is too hard.", "failed")


@pytest.mark.parametrize("version", VERSIONS)
async def test_messages_of_a_session_are_one_conversation(place: Place, version: str) -> None:
    me, url = _me(version, "asker"), f"{place.url}/{version}"
    asked = await told(place.gate, "a2a_chat", me, agent_url=url, message="weather")
    assert (asked["reply"], asked["state"], asked["done"]) == ("Where?", "input_required", False)
    answered = await told(place.gate, "a2a_chat", me, agent_url=url, message="Lisbon")
    assert answered["task"] == asked["task"]
    assert answered["state"] == "completed"
    again = await told(place.gate, "a2a_chat", me, agent_url=url, message="thanks")
    assert again["context"] == asked["context"]
    assert again["task"] != asked["task"]
    other = await told(
        place.gate, "a2a_chat", _me(version, "another"), agent_url=url, message="thanks"
    )
    assert other["context"] != asked["context"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_not_done_in_time_can_be_asked_after(place: Place, version: str) -> None:
    me, url = _me(version, "waiter"), f"{place.url}/{version}"
    begun = await told(place.gate, "a2a_chat", me, agent_url=url, message="never")
    assert begun["state"] == "working"
    assert not begun["done"]
    assert "empty message" in begun["note"]
    heard = len(place.clerk.heard)
    looked = await told(place.gate, "a2a_chat", me, agent_url=url, message="")
    assert looked["task"] == begun["task"]
    assert len(place.clerk.heard) == heard


async def test_a_private_address_that_no_operator_has_named_is_not_asked(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with opened(tmp_path_factory.mktemp("unnamed")) as gate:
        url = f"{place.url}/1.0"
        output = await failed(gate, "a2a_chat", agent_url=url, message="quick")
        assert output.error is not None
        assert "cannot be asked" in output.error.message
        # The same one is heard where it is named.
        me = Caller(tenant="acme", agent="named")
        assert (await told(place.gate, "a2a_chat", me, agent_url=url, message="quick"))["done"]


@pytest.mark.req("T4", "P2")
@pytest.mark.skipif(not DATA.is_file(), reason="../shared/data is not here")
async def test_no_address_of_the_collection_gets_a_connection() -> None:
    inside = HttpClient(Guard(resolver=Resolver(known)), timeout=2.0)
    here = HttpClient(Guard(["127.0.0.1"], resolver=Resolver(known)), timeout=2.0)
    every = [one["url"] for one in json.loads(DATA.read_text("utf-8"))["items"]]
    urls = [url for url in every if not url.startswith(PUBLIC)]
    assert len(urls) >= 70
    until_ns = clock.monotonic_ns() + int(50e9)
    given = {"until_ns": until_ns, "downstream_key": "k", "id": "c", "caller": _me("1.0", "ssrf")}
    call = cast("Call", SimpleNamespace(**given))
    with tripwire() as seen:
        for url in urls:
            with pytest.raises(ToolgateError):
                await a2a_chat(means(client=inside), call, agent_url=url, message="hi")
    assert seen == []
    # The control: what is let out is connected to, and the wire is heard.
    with tripwire() as seen, pytest.raises(ToolgateError):
        await a2a_chat(means(client=here), call, agent_url="http://127.0.0.1:9/", message="hi")
    assert seen
    await inside.close()
    await here.close()
