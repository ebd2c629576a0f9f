"""Who searches, and which wiki: by settings, through their real formats, and when they are odd."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.net.far import Far, answer, far
from tests.tools.asking import failed, opened, told
from tests.tools.world import World, world
from toolgate import Caller
from toolgate.caller import Context
from toolgate.errors import ProviderUnavailable, ToolgateError, ToolNotFound
from toolgate.settings.builtin import Web

pytest.importorskip("selectolax", reason="skipped: no tools")
pytestmark = pytest.mark.req("T1", "T3")
FOUND = ["https://en.wikipedia.org/wiki/Green_tea", "https://tea.example.com/brew?a=1&b=2"]


@pytest.fixture
async def there() -> AsyncGenerator[World]:
    async with world() as found:
        yield found


@pytest.mark.parametrize(
    ("engine", "path", "asked"),
    [
        ("duckduckgo", "/html", {"q": "green tea", "kl": "de-de", "df": "w"}),
        ("duckduckgo", "/lite", {"q": "green tea", "kl": "de-de", "df": "w"}),
        ("searxng", "", {"q": "green tea", "format": "json", "language": "de"}),
        ("searxng", "/search", {"q": "green tea", "time_range": "week"}),
        ("brave", "/brave", {"q": "green tea", "freshness": "pw", "search_lang": "de"}),
    ],
)
async def test_every_engine_answers_alike(
    there: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    path: str,
    asked: dict[str, str],
) -> None:
    web = {"search": engine, "search_url": there.url + path}
    if engine == "brave":
        monkeypatch.setenv("SEARCH_KEY", "a-key-of-the-tests")
        web["key_env"] = "SEARCH_KEY"
    async with opened(tmp_path, web=web) as gate:
        found = await told(gate, "web_search", query="green tea", language="de", recency="week")
        assert [one["url"] for one in found["results"]] == FOUND
        assert found["results"][0]["snippet"] == "Brew at 80 degrees."
        assert found["engine"] == engine
        assert asked.items() <= dict(there.got[-1].query).items()
        alike = await told(gate, "search_engine", query="green tea")
        assert alike["results"] == found["results"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (answer(b"<html>hello</html>", "Content-Type: text/html"), "cannot be read"),
        (answer(b"{}", "Content-Type: application/json"), "cannot be read"),
        (answer(b"[1]"), "cannot be read"),
        (answer(b'{"results": {}}'), "cannot be read"),
        (answer(b"", status="429 Too Many"), "wants fewer questions"),
        (answer(b"", status="403 Forbidden"), "refuses to answer"),
        (answer(b"", status="502 Bad Gateway"), "is broken just now"),
        (answer(b"", status="400 Bad"), "does not take this question"),
    ],
)
async def test_an_odd_answer_of_a_service_is_told(tmp_path: Path, said: bytes, words: str) -> None:
    async with far(lambda _got, _writer: said) as there:
        for engine in ("searxng", "duckduckgo"):
            if engine == "duckduckgo" and said.endswith((b"}", b"]")):
                continue
            web = {"search": engine, "search_url": there.url("")}
            async with opened(tmp_path, web=web) as gate:
                output = await failed(gate, "web_search", query="tea")
                assert output.error is not None
                assert words in output.error.message
                assert str(there.port) not in output.error.message


async def test_results_that_lead_to_no_page_are_left_out(tmp_path: Path) -> None:
    odd = (
        b'{"results": [1, {"url": "javascript:alert(1)", "title": "a"}, {"url": 5, "title": "b"},'
        b'{"url": "http://ok.example/", "title": "O\xe2\x80\x8bK: <div> &amp; more"},'
        b'{"url": "https://[", "title": "c"}, {"title": "d"}]}'
    )
    async with far(lambda _got, _writer: answer(odd)) as there:
        web = {"search": "searxng", "search_url": there.url("")}
        async with opened(tmp_path, web=web) as gate:
            found = await told(gate, "web_search", query="tea")
    assert found["results"] == [
        {"title": "OK: <div> &amp; more", "url": "http://ok.example/", "snippet": ""}
    ]


async def _refused(tmp_path: Path, web: dict[str, Any], caller: Caller | None = None) -> Exception:
    me = caller or Caller(tenant="acme", agent="clerk")
    async with opened(tmp_path, web=web) as gate:
        with pytest.raises(ToolgateError) as refused:
            await gate.call("web_search", {"query": "tea"}, caller=me)
    return refused.value


async def test_nobody_searches_where_an_operator_says_so(tmp_path: Path) -> None:
    refused = await _refused(tmp_path, {"search": "none"})
    assert isinstance(refused, ProviderUnavailable)
    assert "[tools.web] search" in str(refused)


async def test_a_key_that_is_not_set_is_told_by_its_name(tmp_path: Path) -> None:
    refused = await _refused(tmp_path, {"search": "brave", "key_env": "NO_SUCH_KEY_HERE"})
    assert "NO_SUCH_KEY_HERE is empty" in str(refused)


async def test_a_service_that_is_away_is_told_without_its_address(tmp_path: Path) -> None:
    async with far(lambda _got, _writer: None) as there:
        url = there.url("")
    refused = await _refused(tmp_path, {"search": "searxng", "search_url": url})
    assert isinstance(refused, ProviderUnavailable)
    assert url not in str(refused)


async def test_a_task_without_the_web_has_none(there: World, tmp_path: Path) -> None:
    web = {"search": "searxng", "search_url": there.url}
    caller = Caller(tenant="acme", agent="clerk", context=Context(no_web=True))
    assert isinstance(await _refused(tmp_path, web, caller), ToolNotFound)
    assert there.got == []


async def test_a_key_goes_to_who_searches_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_KEY", "s3cret-of-the-engine")

    def lead(second: Far) -> bytes:
        return answer(b"", f"Location: {second.url('/x', 'localhost')}", status="302 Found")

    async with (
        far(lambda _got, _writer: answer(b'{"web": {}}')) as second,
        far(lambda _got, _writer: lead(second)) as first,
    ):
        web = {"search": "brave", "search_url": first.url(""), "key_env": "SEARCH_KEY"}
        refused = await _refused(tmp_path, web)
        assert "s3cret" not in str(refused)
        assert first.got[0].headers["x-subscription-token"] == "s3cret-of-the-engine"
        assert second.got == [], "what an engine leads to is checked as anything else"


@pytest.mark.parametrize("said", [b"[]", b"null", b"<html>", b'{"title": 5, "content_urls": 7}'])
async def test_a_wiki_that_is_odd_does_no_harm(tmp_path: Path, said: bytes) -> None:
    caller = Caller(tenant="acme", agent="clerk")
    async with (
        far(lambda _got, _writer: answer(said)) as there,
        opened(tmp_path, web={"wikipedia_url": there.url("")}) as gate,
    ):
        output = await gate.call("fetch_wikipedia", {"title": "Tea"}, caller=caller)
    if said.startswith(b"{"):
        assert output.ok
        assert output.data["url"].startswith("http://127.0.0.1")
    else:
        assert output.error is not None
        assert "cannot be read" in output.error.message


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"search": "searxng"}, "name the search_url"),
        ({"search": "brave"}, "name the key_env"),
        ({"search": "google"}, "duckduckgo"),
        ({"search_url": "ftp://x"}, "write an address"),
        ({"user_agent": "a\r\nb"}, "pattern"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Web.model_validate(given)
