"""Embeddings: what made a vector is told, and vectors of two models are never compared."""

import math
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools import embeddings_api
from tests.tools.asking import failed, opened, told
from tests.tools.embeddings_api import EmbeddingsApi, usual
from tests.tools.means import means
from toolgate import Caller
from toolgate.caller import Context
from toolgate.errors import ProviderUnavailable
from toolgate.shelf import Place
from toolgate.tools.llm import index
from toolgate.tools.meaning.embedding import embedded, floats, kept, model_of
from toolgate.tools.meaning.words import spaced, terms

pytest.importorskip("wordllama", reason="skipped: no tools")
from toolgate.tools.meaning.ranking import Text, cosines, scores, shares
from toolgate.tools.meaning.static import static

pytestmark = [pytest.mark.req("T1", "T2")]
_TEXTS = st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=5)


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[EmbeddingsApi]:
    monkeypatch.setenv("EMBEDDINGS_KEY", embeddings_api.KEY)
    async with embeddings_api.serving() as found:
        yield found


def _at(api: EmbeddingsApi) -> dict[str, str]:
    return {"url": api.url, "model": "small-3", "key_env": "EMBEDDINGS_KEY"}


@settings(max_examples=30, deadline=None)
@given(texts=_TEXTS)
def test_a_vector_has_the_length_1_and_depends_on_its_text_alone(texts: list[str]) -> None:
    together = static().vectors(texts)
    for text, vector in zip(texts, together, strict=True):
        assert static().vectors([text]) == [vector]
        assert math.isclose(math.hypot(*floats(vector)), 1, abs_tol=1e-4)
        assert math.isclose(cosines(vector, [kept(vector)])[0], 1, abs_tol=2e-3)


@settings(max_examples=30, deadline=None)
@given(texts=_TEXTS, query=st.text(min_size=1, max_size=40))
def test_scores_are_from_0_to_1_and_the_same_text_is_best(texts: list[str], query: str) -> None:
    every = [*texts, query]
    made = [Text(spaced(text), kept(one)) for text, one in zip(every, _vectors(every), strict=True)]
    found = scores(_vectors([query])[0], terms(query), made)
    assert all(-1e-6 <= one <= 1 + 1e-6 for one in found)
    assert found[-1] >= max(found) - 2e-3
    assert all(0 <= one <= 1 for one in shares(terms(query), [one.words for one in made]))


def _vectors(texts: list[str]) -> list[bytes]:
    return static().vectors(texts)


def test_words_count_more_where_they_are_rare_and_nothing_without_them() -> None:
    texts = [spaced(text) for text in ("the cat and the dog", "the bird", "the INV-7 bill")]
    rare, common = shares(terms("inv-7"), texts), shares(terms("the"), texts)
    assert (rare[0], rare[1]) == (0, 0)
    assert rare[2] > 0.8
    assert shares(terms("the inv-7"), texts)[2] > shares(terms("the inv-7"), texts)[0] > 0
    assert all(one > 0 for one in common)
    assert terms("東京 タワー") == ["東", "京", "タ", "ワ", "ー"]


async def test_a_long_text_is_embedded_elsewhere_and_alike() -> None:
    around = means()
    caller = Caller(tenant="acme", agent="clerk")
    long = "A sentence about nothing much. " * 200
    try:
        found = await embedded(around, caller, [long])
    finally:
        await around.workers.close()
    assert found.vectors == static().vectors([long])
    assert found.model == model_of(around) == "wordllama-l2-supercat-256"


async def test_a_service_is_asked_in_its_format(tmp_path: Path, api: EmbeddingsApi) -> None:
    async with opened(tmp_path, llm=_at(api)) as gate:
        found = await told(gate, "embed_text", texts=["aaa", "bbb", "aaa"])
        assert (found["model"], found["dimensions"]) == ("small-3", 8)
        one, two, three = found["embeddings"]
        assert one == three != two
        assert math.isclose(math.hypot(*one), 1, abs_tol=1e-4)
        body = {"model": "small-3", "input": ["aaa", "bbb", "aaa"], "encoding_format": "float"}
        assert api.requests == [body]
        sorted_as = await told(gate, "classify_text", text="aaa", labels=["bbb", "aab"])
        assert (sorted_as["label"], sorted_as["calibrated"]) == ("aab", False)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (200, {"data": []}),
        (200, {"data": [{"index": 0, "embedding": ["x"]}]}),
        (200, {"data": [{"index": 0, "embedding": [0.0, 0.0]}]}),
        (200, {"data": [{"index": 7, "embedding": [1.0]}]}),
        (200, []),
        (400, {"error": {"message": "too long, and here is a secret"}}),
        (503, {}),
    ],
)
async def test_an_odd_answer_is_told_and_not_believed(
    tmp_path: Path, api: EmbeddingsApi, status: int, answer: Any
) -> None:

    def odd(_body: dict[str, Any]) -> Any:
        return answer

    api.status, api.answer = status, odd
    async with opened(tmp_path, llm=_at(api)) as gate:
        output = await failed(gate, "embed_text", text="a")
        assert output.error is not None
        assert output.error.code == "tool_error"
        assert "secret" not in output.error.message
        api.status, api.answer = 200, usual
        await told(gate, "embed_text", text="a")


async def test_who_may_not_use_the_web_and_who_is_away(tmp_path: Path, api: EmbeddingsApi) -> None:
    offline = Caller(tenant="acme", agent="clerk", context=Context(no_web=True))
    async with opened(tmp_path, llm=_at(api)) as gate:
        output = await failed(gate, "embed_text", offline, text="a")
        assert output.error is not None
        assert "may not use the web" in output.error.message
        assert not api.requests
    async with opened(tmp_path, llm={"url": "http://127.0.0.1:9/v1"}) as gate:
        with pytest.raises(ProviderUnavailable, match="cannot be reached"):
            await told(gate, "embed_text", text="a")
    async with opened(tmp_path) as gate:
        # Without a service nothing leaves, and the same task may.
        await told(gate, "embed_text", offline, text="a")


async def test_another_model_makes_an_index_again_and_reads_memories_by_their_words(
    tmp_path: Path, api: EmbeddingsApi
) -> None:
    items = [{"id": "a", "text": "zzz zzz"}, {"id": "b", "text": "How to reset a password"}]
    async with opened(tmp_path) as gate:
        await told(gate, "similarity_search", index="faq", items=items)
        await told(gate, "memory_save", text="Orchids need water.")
    async with opened(tmp_path, llm=_at(api)) as gate:
        found = await told(gate, "similarity_search", index="faq", query="zzz zzz", limit=1)
        assert found["model"] == "small-3"
        assert found["matches"] == [{"id": "a", "text": "zzz zzz", "score": 1.0}]
        memories = await told(gate, "memory_load", query="orchids water", threshold=0.6)
        assert "by their words only" in memories["note"]
        assert [one["text"] for one in memories["memories"]] == ["Orchids need water."]


async def test_an_index_is_its_owners_and_without_the_guard_it_would_be_everybodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = Caller(tenant="acme", agent="clerk", persona="anna")
    others = [
        Caller(tenant="acme", agent="clerk", persona="ben"),
        Caller(tenant="globex", agent="clerk", persona="anna"),
        Caller(tenant="acme", agent="anna"),
    ]
    async with opened(tmp_path) as gate:
        put = {"index": "faq", "items": ["The safe is behind the painting."]}
        await told(gate, "similarity_search", anna, **put)
        asked = {"index": "faq", "query": "the safe"}
        assert (await told(gate, "similarity_search", anna, **asked))["compared"] == 1
        for other in others:
            assert (await told(gate, "similarity_search", other, **asked))["compared"] == 0

        def everywhere(_tenant: str, kind: str, _owner: str) -> Place:
            return Place("acme", kind, "persona:anna")

        monkeypatch.setattr(index, "Place", everywhere)
        for other in others:
            assert (await told(gate, "similarity_search", other, **asked))["compared"] == 1


async def test_what_is_replaced_takes_no_more_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST", 3)

    def items(*names: str) -> dict[str, Any]:
        return {"query": "a cat", "index": "i", "items": [{"id": n, "text": n} for n in names]}

    async with opened(tmp_path) as gate:
        await told(gate, "similarity_search", **items("a", "b"))
        await told(gate, "similarity_search", **items("a", "b", "c"))
        await told(gate, "similarity_search", **items("c"))
        output = await failed(gate, "similarity_search", **items("c", "d"))
        assert output.error is not None
        assert "more than 3 items" in output.error.message
