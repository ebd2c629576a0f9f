"""Memories in a service that speaks SomaBrain's API: the same tools, and each owner its own."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.tools import somabrain_api
from tests.tools.asking import ME, failed, opened, told
from tests.tools.somabrain_api import SomaBrainApi
from toolgate import Caller, Toolgate
from toolgate.caller import Context
from toolgate.errors import ProviderUnavailable
from toolgate.tools.memory import somabrain

pytest.importorskip("wordllama", reason="skipped: no tools")
pytestmark = [pytest.mark.req("T3")]
TEXT = "The rent is due on the third day."
ANNA = Caller(tenant="acme", agent="clerk", persona="anna")
BEN = Caller(tenant="acme", agent="clerk", persona="ben")


@pytest.fixture
async def api() -> AsyncGenerator[SomaBrainApi]:
    async with somabrain_api.serving() as found:
        yield found


@pytest.fixture
async def gate(
    api: SomaBrainApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Toolgate]:
    monkeypatch.setenv("SOMA_KEY", somabrain_api.KEY)
    async with opened(tmp_path, memory={"url": api.url, "key_env": "SOMA_KEY"}) as found:
        yield found


async def test_memories_live_in_the_service(gate: Toolgate, api: SomaBrainApi) -> None:
    saved = await told(gate, "memory_save", text=TEXT + " #rent")
    await told(gate, "memory_save", text="Ben feeds the cat.")
    (payload,) = [one for one in api.kept.values() if "rent" in one["content"]]
    assert payload["universe"] == "agent:clerk"
    found = await told(gate, "memory_load", query="the rent is due", filter="tag=rent")
    (memory,) = found["memories"]
    assert memory["id"] == saved["id"]
    assert memory["saved"] == saved["saved"]
    assert (memory["score"], memory["agent"], memory["tags"]) == (1.0, "clerk", ["rent"])
    gone = await told(gate, "memory_forget", query="the rent is due")
    assert [one["id"] for one in gone["forgotten"]] == [saved["id"]]
    assert [one["content"] for one in api.kept.values()] == ["Ben feeds the cat."]


@pytest.mark.req("S3")
async def test_saving_is_taken_back_there_too(gate: Toolgate, api: SomaBrainApi) -> None:
    output = await gate.call("memory_save", {"text": TEXT}, caller=ME)
    assert api.kept
    await gate.undo(caller=ME, call_id=output.call_id)
    assert not api.kept


async def test_a_persona_has_its_own_whatever_the_service_answers(
    gate: Toolgate, api: SomaBrainApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = await told(gate, "memory_save", ANNA, text=TEXT)
    for keeps_apart in (True, False):
        api.keeps_apart = keeps_apart
        mine = await told(gate, "memory_load", ANNA, query=TEXT)
        assert [one["text"] for one in mine["memories"]] == [TEXT]
        assert (await told(gate, "memory_load", BEN, query=TEXT))["searched"] == 0
        assert (await told(gate, "memory_forget", BEN, query=TEXT))["count"] == 0
        await told(gate, "memory_delete", BEN, ids=saved["id"])
        assert len(api.kept) == 1
    # With the guard off, the same persona's name stands for everybody.

    def anybody(_caller: Caller) -> str:
        return "persona:anna"

    monkeypatch.setattr(somabrain, "owner_of", anybody)
    assert (await told(gate, "memory_load", BEN, query=TEXT))["searched"] == 1


async def test_what_the_service_cannot_do_is_told(gate: Toolgate, api: SomaBrainApi) -> None:
    output = await failed(gate, "memory_load", query="rent", filter="user=anna")
    assert output.error is not None
    assert "does not know users" in output.error.message
    api.status = 500
    broken = await failed(gate, "memory_save", text=TEXT)
    # Whether it was kept is not known.
    assert broken.status == "unknown"
    api.status = 403
    refused = await failed(gate, "memory_save", text="Again: " + TEXT)
    assert refused.status == "error"


async def test_a_task_without_the_web_sends_nothing(gate: Toolgate, api: SomaBrainApi) -> None:
    offline = Caller(tenant="acme", agent="clerk", context=Context(no_web=True))
    output = await failed(gate, "memory_save", offline, text=TEXT)
    assert output.error is not None
    assert "may not use the web" in output.error.message
    assert not api.kept


async def test_a_service_that_is_away_or_a_key_that_is_missing_is_told(
    tmp_path: Path, api: SomaBrainApi
) -> None:
    async with opened(tmp_path, memory={"url": api.url, "key_env": "NO_SUCH_KEY"}) as gate:
        with pytest.raises(ProviderUnavailable, match="NO_SUCH_KEY is empty"):
            await told(gate, "memory_save", text=TEXT)
    async with opened(tmp_path, memory={"url": "http://127.0.0.1:9"}) as gate:
        with pytest.raises(ProviderUnavailable, match="cannot be reached") as caught:
            await told(gate, "memory_load", query="rent")
        assert "127.0.0.1" not in caught.value.message
