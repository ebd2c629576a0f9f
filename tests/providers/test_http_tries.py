"""A request is repeated only where that is safe; a host that is down is left alone."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, states
from tests.providers.http_tools import definition, gate, write
from tests.providers.service import Answer, Seen, answer, service
from toolgate import Caller
from toolgate.errors import CircuitOpen, InvalidArguments, ProviderUnavailable
from toolgate.settings.outward import HttpTools

KEYED = {"effect": "irreversible", "downstream_key": {"header": "Idempotency-Key"}}
ONCE = {"effect": "irreversible"}
QUICK = {"attempts": 3, "base_delay": 0.001, "max_delay": 0.01}
LOST = Answer(200, b"half", missing=5)
FINE = Answer()

# What the tool is, what comes first, how often it is asked, and how it ends.
TRIED: list[tuple[dict[str, Any], Answer, int, str]] = [
    ({"effect": "pure"}, answer({}, 500), 3, "success"),
    ({"effect": "idempotent"}, answer({}, 503, Retry_After="0"), 3, "success"),
    ({"effect": "pure"}, answer({}, 429, Retry_After="0"), 3, "success"),
    ({"effect": "pure"}, LOST, 3, "success"),
    (KEYED, answer({}, 502), 3, "success"),
    (KEYED, Answer(500, b"half", missing=5), 3, "success"),
    ({"effect": "pure"}, answer({}, 404), 1, "error"),
    ({"effect": "pure"}, answer({}, 401), 1, "error"),
    (ONCE, answer({}, 500), 1, "unknown"),
    (ONCE, answer({}, 429), 1, "error"),
    (ONCE, LOST, 1, "error"),
]


@pytest.mark.req("P2", "X2")
@pytest.mark.parametrize(
    ("fields", "first", "times", "status"), TRIED, ids=lambda one: str(one)[:40]
)
async def test_only_what_may_be_repeated_is(
    tmp_path: Path, fields: dict[str, Any], first: Answer, times: int, status: str
) -> None:
    async with service() as far:
        far.say(first, first, FINE)
        more = {"retry": QUICK} if fields is not ONCE else {}
        tool = definition({"url": f"{far.url}/x"}, **fields, **more)
        async with gate(tmp_path, tool, place=far.place) as opened:
            output = await opened.call("act", {}, caller=ME)
        assert (len(far.seen), output.status) == (times, status)
        keys = {seen.headers.get("idempotency-key") for seen in far.seen}
        assert len(keys) == 1
        assert (None in keys) == (fields is not KEYED)


@pytest.mark.req("P2")
@pytest.mark.parametrize(("most", "times"), [(0, 1), (2, 3)])
async def test_the_settings_say_how_often_where_a_tool_does_not(
    tmp_path: Path, most: int, times: int
) -> None:
    async with service() as far:
        far.say(answer({}, 500))
        url = {"url": f"{far.url}/x"}
        tools = [definition(url, name="read"), definition(url, name="write", **ONCE)]
        http = HttpTools(max_retries=most)
        async with gate(tmp_path, *tools, place=far.place, http=http) as opened:
            await opened.call("read", {}, caller=ME)
            assert len(far.seen) == times
            await opened.call("write", {}, caller=ME)
            assert len(far.seen) == times + 1


@pytest.mark.req("P2")
async def test_what_was_not_sent_is_known_not_to_have_happened(tmp_path: Path) -> None:
    async with service() as far:
        gone = far.place
    place = {"url": f"http://{gone}/x"}
    elsewhere = {"url": "http://169.254.169.254/latest/meta-data"}
    tools = [
        definition(place, name="down", **ONCE),
        definition(elsewhere, name="metadata", **ONCE),
        definition({"url": f"http://{gone}/{{id}}"}, name="wrong", **ONCE),
    ]
    async with gate(tmp_path, *tools, place=gone) as opened:
        with pytest.raises(ProviderUnavailable) as down:
            await opened.call("down", {}, caller=ME)
        with pytest.raises(ProviderUnavailable, match=r"\[net\] allow") as refused:
            await opened.call("metadata", {}, caller=ME)
        with pytest.raises(InvalidArguments, match=r"must not be \. or \.\."):
            await opened.call("wrong", {"id": ".."}, caller=ME)
        assert (down.value.retryable, refused.value.retryable) == (True, False)
        assert [(tool, state) for tool, state, _ in await states(opened)] == [
            ("down", "failed"), ("metadata", "failed"), ("wrong", "failed"),
        ]  # fmt: skip


@pytest.mark.req("X4", "P2")
async def test_a_host_that_is_down_is_left_alone_and_one_that_answers_is_not(
    tmp_path: Path,
) -> None:
    async with service() as far, service() as other:
        tools = [
            definition({"url": f"{where.url}/{name}", "method": "GET"}, name=name)
            for name, where in (("first", far), ("second", far), ("third", other))
        ]
        http = HttpTools(max_retries=0)
        everywhere = "127.0.0.1"
        async with gate(tmp_path, *tools, place=everywhere, http=http) as opened:
            far.say(answer({}, 500))
            # A tool of it that fails says nothing of the host.
            for _ in range(10):
                assert not (await opened.call("first", {}, caller=ME)).ok
            with pytest.raises(CircuitOpen):
                await opened.call("first", {}, caller=ME)
            far.say(answer({}, 200))
            assert (await opened.call("second", {}, caller=ME)).ok
            # A gateway that cannot reach it does.
            far.say(answer({}, 502))
            for _ in range(9):
                assert not (await opened.call("second", {}, caller=ME)).ok
            asked = len(far.seen)
            globex = Caller(tenant="globex", agent="billing")
            with pytest.raises(CircuitOpen, match="the server behind"):
                await opened.call("first", {}, caller=globex)
            assert len(far.seen) == asked
            assert (await opened.call("third", {}, caller=ME)).ok


@pytest.mark.req("P2")
async def test_the_time_of_a_tool_is_the_time_of_its_request(tmp_path: Path) -> None:
    over = asyncio.Event()

    async def never(_seen: Seen) -> Answer:
        await over.wait()
        return FINE

    async with service() as far:
        far.answers = never
        tool = definition({"url": f"{far.url}/x"}, timeout=0.2, **ONCE)
        http = HttpTools(default_timeout=0.1)
        quick = definition({"url": f"{far.url}/x"}, name="quick", **ONCE)
        async with gate(tmp_path, tool, quick, place=far.place, http=http) as opened:
            for name in ("act", "quick"):
                output = await opened.call(name, {}, caller=ME)
                assert output.error is not None
                assert (output.status, output.error.code) == ("unknown", "timed_out")
        over.set()


async def test_a_reload_changes_where_the_next_call_goes(tmp_path: Path) -> None:
    async with service() as far:
        tool = definition({"url": f"{far.url}/old", "method": "GET"})
        async with gate(tmp_path, tool, place=far.place) as opened:
            assert (await opened.call("act", {}, caller=ME)).ok
            write(tmp_path, definition({"url": f"{far.url}/new", "method": "GET"}))
            await opened.catalog.reload()
            assert (await opened.call("act", {}, caller=ME)).ok
            write(tmp_path, definition({"url": f"{far.url}/{{nobody}}", "method": "GET"}))
            await opened.catalog.reload()
            assert "nobody" in opened.catalog.current.unusable["act"]
        assert [seen.target for seen in far.seen] == ["/old", "/new"]
