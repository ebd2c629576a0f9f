"""Pieces of the wire: events in any pieces, headers that repeat arguments, lists page by page."""

import asyncio
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.asked import Line, Question
from toolgate.errors import CannotAsk, InputNeeded, ToolError
from toolgate.upstreams import events as stream
from toolgate.upstreams import headers, lists
from toolgate.upstreams.asking import Asking
from toolgate.upstreams.events import EndlessError, Event, Events
from toolgate.upstreams.failures import AwayError, BrokenError
from toolgate.upstreams.lists import Lists
from toolgate.upstreams.message import FaultError, Json
from toolgate.upstreams.rounds import answered_in_rounds
from toolgate.upstreams.upstream import Kind

STREAM = (
    b"\xef\xbb\xbf: hello\r\nid: 7\r\nretry: 1500\r\ndata: \r\n\r\n"
    b"event: message\rdata: {\rdata: }\r\rid: 8\ndata:x\n\nevent: other\ndata: y\n\ndata: half"
)


@pytest.mark.req("P2")
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_in_whatever_pieces_they_come(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    events = Events()
    found: list[Event] = []
    for begin, end in pairwise(edges):
        found += events.feed(STREAM[begin:end])
    assert found == [Event("message", b"{\n}"), Event("message", b"x"), Event("other", b"y")]
    assert (events.last, events.retry) == ("8", 1.5)


class Counting:
    """Ends of lines, and how many bytes were looked through for them."""

    def __init__(self) -> None:
        self.looked = 0

    def split(self, piece: bytes) -> list[bytes]:
        self.looked += len(piece)
        return re.split(rb"\r\n|\r|\n", piece)


@pytest.mark.req("P2")
def test_each_byte_of_a_stream_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting()
    monkeypatch.setattr(stream, "_LINE_END", counting)
    events = Events()
    events.feed(b"data: ")
    for _ in range(1_000):
        assert events.feed(b"a" * 1_000) == []
    assert [len(one.data) for one in events.feed(b"\n\n")] == [1_000_000]
    assert counting.looked == 6 + 1_000_000 + 2


@pytest.mark.req("P2")
@pytest.mark.parametrize("piece", [b"data: aaaaaaaaaa", b"data:\n", b": aaaaaa", b"id: aaaaaaa"])
def test_an_event_without_an_end_is_refused(piece: bytes) -> None:
    events = Events(100)

    def fed() -> None:
        for _ in range(200):
            events.feed(piece)

    with pytest.raises(EndlessError):
        fed()


@pytest.mark.req("P2")
def test_a_stream_that_goes_on_begins_with_the_event_that_broke_off() -> None:
    events = Events()
    assert events.feed(b"retry: 10\nid: 1\ndata: a\n\nid: 2\ndata: half\ndata: of") == [
        Event("message", b"a")
    ]
    assert (events.last, events.retry) == ("1", 0.01)
    events.begin()
    assert events.feed(b"\xef\xbb\xbfid: 2\ndata: whole\n\n") == [Event("message", b"whole")]
    assert events.last == "2"


@pytest.mark.req("P2")
@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}, {("a",): "A"}),
        (
            {"properties": {"a": {"properties": {"b": {"type": "integer", "x-mcp-header": "B"}}}}},
            {("a", "b"): "B"},
        ),
        ({"properties": {"a": {"type": "string", "default": {"x-mcp-header": "A"}}}}, {}),
        ({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}, None),
        ({"properties": {"a": {"type": "string", "x-mcp-header": "A B"}}}, None),
        ({"properties": {"a": {"type": "string", "x-mcp-header": ""}}}, None),
        ({"properties": {"a": {"type": "string", "x-mcp-header": "A\r\nHost"}}}, None),
        ({"anyOf": [{"type": "string", "x-mcp-header": "A"}]}, None),
        ({"type": "string", "x-mcp-header": "A"}, None),
        (
            {
                "properties": {
                    "a": {"type": "string", "x-mcp-header": "A"},
                    "b": {"type": "string", "x-mcp-header": "a"},
                }
            },
            None,
        ),
        (None, {}),
    ],
)
def test_what_a_tool_wants_in_headers_is_taken_or_the_tool_is_left_out(
    schema: Any, wanted: Any
) -> None:
    assert headers.repeated(schema) == wanted


@pytest.mark.req("P2")
@pytest.mark.parametrize("text", ["a\r\nHost: x", " a", "ä", "=?base64?YQ==?=", "\0", "a\n"])
def test_no_value_breaks_out_of_its_header(text: str) -> None:
    made = headers.of_arguments({("a",): "A"}, {"a": text})["Mcp-Param-A"]
    assert made.isascii()
    assert made.startswith("=?base64?")
    assert "\n" not in made


class Pages:
    """A server's list, page by page."""

    def __init__(self, *pages: Json) -> None:
        self.pages = pages
        self.asked = 0

    async def __call__(self, method: str, params: Json) -> Json:
        self.asked += 1
        return self.pages[int(params.get("cursor", "0")) % len(self.pages)]


HAS = {"tools": {"listChanged": True}}


@pytest.mark.req("P2")
async def test_ten_thousand_tools_are_listed_once_and_kept() -> None:
    lists = Lists()
    pages = [
        {
            "tools": [{"name": f"t{page}_{one}"} for one in range(100)],
            **({"nextCursor": str(page + 1)} if page < 99 else {}),
        }
        for page in range(100)
    ]
    ask = Pages(*pages)
    for _ in range(3):
        assert len(await lists.listed(Kind.TOOLS, ask, HAS, is_modern=True)) == 10_000
    assert ask.asked == 100
    lists.change(Kind.TOOLS)
    await lists.listed(Kind.TOOLS, ask, HAS, is_modern=True)
    assert ask.asked == 200
    lists.close()


@pytest.mark.req("P2")
async def test_a_list_that_leads_back_to_itself_has_no_end() -> None:
    ask = Pages({"tools": [], "nextCursor": "1"}, {"tools": [], "nextCursor": "2"})
    with pytest.raises(AwayError, match="no end"):
        await Lists().listed(
            Kind.TOOLS, Pages({"tools": [], "nextCursor": "0"}), HAS, is_modern=True
        )
    with pytest.raises(AwayError, match="no end"):
        await Lists().listed(Kind.TOOLS, ask, HAS, is_modern=True)


@pytest.mark.req("P2")
async def test_all_pages_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = {"name": "t", "description": "x" * 1_000}
    pages = [{"tools": [tool], "nextCursor": str(one + 1)} for one in range(50)]
    ask = Pages(*pages, {"tools": [tool]})
    # The control: as it is, that is little.
    assert len(await Lists().listed(Kind.TOOLS, ask, HAS, is_modern=True)) == 51
    monkeypatch.setattr(lists, "_MOST_BYTES", 10_000)
    ask.asked = 0
    with pytest.raises(AwayError, match="10,000 bytes"):
        await Lists().listed(Kind.TOOLS, ask, HAS, is_modern=True)
    assert ask.asked == 10


@pytest.mark.req("P2")
async def test_all_pages_together_have_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(method: str, params: Json) -> Json:
        await asyncio.Event().wait()
        return {}

    async def late(method: str, params: Json) -> Json:
        raise TimeoutError

    # The control: what one page took too long for is told as it was.
    with pytest.raises(TimeoutError):
        await Lists().listed(Kind.TOOLS, late, HAS, is_modern=True)
    monkeypatch.setattr(lists, "_MOST_SECONDS", 0.01)
    with pytest.raises(AwayError, match="too long"):
        await Lists().listed(Kind.TOOLS, never, HAS, is_modern=True)


class Caller:
    """Answers with what a test gives it."""

    wants_progress = False
    log_level = ""

    def __init__(self, *able: str, answer: Any = None) -> None:
        self.capabilities = dict[str, Any].fromkeys(able, True)
        self.answer = answer
        self.heard: list[Question] = []

    def progress(self, done: float, total: float | None, message: str) -> None: ...
    def log(self, level: str, message: Any) -> None: ...
    def queued(self, call_id: str) -> None: ...

    async def ask(self, questions: Any) -> Any:
        self.heard += questions.values()
        if isinstance(self.answer, Exception):
            raise self.answer
        return dict.fromkeys(questions, self.answer)


FORM = {"message": "?", "requestedSchema": {"properties": {"a": {"default": 1}, "b": {}}}}
ELICIT = "elicitation/create"
YES = {"action": "accept", "content": {"b": 2}}


@pytest.mark.req("P2")
async def test_what_a_server_asks_is_refused_unless_an_operator_allows_it() -> None:
    caller: Line = Caller("elicitation", "sampling", "roots", answer=YES)
    closed, open_ = Asking("s", frozenset()), Asking("s", frozenset({"elicitation"}))
    for method in (ELICIT, "sampling/createMessage", "roots/list", "made/up"):
        with pytest.raises(FaultError):
            await closed.request(method, FORM, caller)
        with pytest.raises(ToolError):
            await closed.inputs({"q": {"method": method, "params": FORM}}, caller, {})
    # The controls: what is allowed is asked, and nothing beside it.
    assert await closed.request("ping", {}, None) == {}
    filled = {"action": "accept", "content": {"a": 1, "b": 2}}
    assert await open_.request(ELICIT, FORM, caller) == filled
    asked = {"q": {"method": ELICIT, "params": FORM}}
    assert await open_.inputs(asked, caller, {}) == {"q": filled}
    with pytest.raises(FaultError):
        await open_.request("sampling/createMessage", {}, caller)


@pytest.mark.req("P2")
async def test_who_cannot_be_asked_declines_and_who_answers_later_ends_the_call() -> None:
    asking = Asking("s", frozenset({"elicitation"}))
    assert (await asking.request(ELICIT, FORM, None))["action"] == "decline"
    assert (await asking.request(ELICIT, FORM, Caller()))["action"] == "decline"
    with pytest.raises(CannotAsk):
        await asking.inputs({"q": {"method": ELICIT, "params": FORM}}, Caller(), {})
    later = Caller("elicitation", answer=InputNeeded({}))
    with pytest.raises(InputNeeded):
        await asking.request(ELICIT, FORM, later)


@pytest.mark.req("P2")
async def test_rounds_carry_state_and_answers_and_have_an_end() -> None:
    sent: list[Json] = []
    asks = {"resultType": "input_required", "requestState": "s1"}
    asks["inputRequests"] = {"q": {"method": ELICIT, "params": {}}}  # type: ignore[assignment]

    async def again(more: Json) -> Json:
        sent.append(more)
        return {"resultType": "complete", "content": []} if len(sent) == 2 else asks

    caller = Caller("elicitation", answer={"action": "accept", "content": {}})
    asking = Asking("s", frozenset({"elicitation"}))
    assert await answered_in_rounds(asks, again, asking, caller) == {
        "resultType": "complete",
        "content": [],
    }
    assert sent[0] == {
        "inputResponses": {"q": {"action": "accept", "content": {}}},
        "requestState": "s1",
    }

    async def for_ever(_: Json) -> Json:
        return asks

    with pytest.raises(BrokenError, match="rounds"):
        await answered_in_rounds(asks, for_ever, asking, caller)
