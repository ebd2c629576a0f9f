"""What a browser gets from any door: no page, no frame, no cookie, and no way elsewhere (145)."""

from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.auth.test_origin import SAFE
from tests.mcp.house import LEGACY
from tests.server.busy import Busy, busy
from tests.server.raw import connect, everything
from tests.server.samples import MISSING, asked
from toolgate.server.routes import TABLE

pytestmark = pytest.mark.req("V1", "V2", "V3")
ROUTES = [(route.method, route.address) for route in TABLE.routes]
KINDS = ("application/json", "application/problem+json", "text/event-stream", "text/plain")
_DOES = "alert(document.domain)"
_HOLDERS = (
    "<script>{}</script>",
    "</script><script>{}</script>",
    "<img src=x onerror={}>",
    "<svg/onload={}>",
    "<body onload={}>",
    "<iframe src=javascript:{}></iframe>",
    "<a href='javascript:{}'>x</a>",
    "[x](javascript:{})",
    "<math><mi xlink:href='javascript:{}'>",
    "<details open ontoggle={}>",
)
_AROUND = ("{}", '">{}', "'>{}", "--><!-- {}", "]]>{}")
# Fifty: each way to say it, in each place from which it would have to break out.
PAGES = [around.format(one.format(_DOES)) for around in _AROUND for one in _HOLDERS]
TOOLS = "".join(
    "  - "
    + orjson.dumps(
        {
            "name": f"painted{number}",
            "description": page,
            "config": {"module": "busy_tools", "function": "act"},
            "effect": "pure",
            "input_schema": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": page, "title": page}},
            },
        }
    ).decode()
    + "\n"
    for number, page in enumerate(PAGES)
)
ELSEWHERE = (
    *("//evil.example", "//evil.example/%2e%2e", "/\\evil.example", "/%2f%2fevil.example"),
    *(
        "/v1/tools/",
        "/v1//tools",
        "/mcp/",
        "/v1/tools?next=//evil.example",
        "/https://evil.example",
    ),
    *("/login?return_to=https://evil.example", "/v1/tools/..", "/v1/tools/%0d%0aLocation:%20//e"),
)
BEGIN: Mapping[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}},
}
PING: Mapping[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    with busy(tmp_path_factory.mktemp("browser"), more=TOOLS) as served:
        yield served


def is_no_page(headers: Mapping[str, str], *, empty: bool = False) -> None:
    """Not for a frame, not to be guessed at, not kept by others, and nothing that leads on."""
    said = {name.lower(): value for name, value in headers.items()}
    assert SAFE.items() - said.items() <= {("cache-control", SAFE["cache-control"])}, said
    assert said["cache-control"].partition(",")[0] in {"no-store", "private"}, said
    assert not {"location", "set-cookie", "refresh"} & said.keys(), said
    assert empty or said["content-type"].partition(";")[0] in KINDS, said


@pytest.mark.parametrize("at", ROUTES, ids=" ".join)
def test_no_answer_of_a_route_is_a_page(house: Busy, at: tuple[str, str]) -> None:
    method, path, body = asked(at, {**MISSING, "tenant": "acme"})
    for who in ("admin", "agent", "nobody"):
        if at == ("GET", "/v1/events") and who != "nobody":
            with house.stream(who, method, path) as (stream, _events):
                is_no_page(dict(stream.getheaders()))
            continue
        answer = house.ask(who, method, path, body)
        assert not 300 <= answer.status < 400, who
        is_no_page(answer.headers)


def test_no_answer_of_mcp_is_a_page(house: Busy) -> None:
    key = house.secrets["agent"]
    for method in ("GET", "POST", "DELETE", "PUT", "OPTIONS"):
        for raw in (b"", b"{}", orjson.dumps(BEGIN), orjson.dumps(PING)):
            for who in (key, "tg_agent_nobodys"):
                answer = house.server.ask(method, "/mcp", key=who, raw=raw)
                is_no_page(answer.headers, empty=not answer.text)


@pytest.mark.parametrize(
    "sent",
    [
        b"<script>\r\n\r\n",
        b"GET //evil.example:x HTTP/9\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: %b" % (b"x" * 70_000),
    ],
    ids=["no request", "no version", "no end"],
)
def test_what_is_refused_before_it_is_a_request_is_no_page_either(house: Busy, sent: bytes) -> None:
    with closing(connect(house.server)) as line:
        line.sendall(sent)
        head, _, body = everything(line).decode().partition("\r\n\r\n")
    assert orjson.loads(body)["code"] in {"malformed_request", "headers_too_large"}
    is_no_page(dict(one.split(": ", 1) for one in head.split("\r\n")[1:]))


def test_fifty_descriptions_that_are_pages_are_texts_in_json(house: Busy) -> None:
    assert len({*PAGES}) == 50
    for format_ in ("toolgate", "openai", "anthropic", "mcp", "prompt"):
        answer = house.ask("agent", "GET", f"/v1/tools?format={format_}&limit=500")
        is_no_page(answer.headers)
        assert answer.headers["content-type"] == "application/json"
        # The positive control: they are there, each as it was written.
        assert str(answer.body["tools"]).count(_DOES) >= len(PAGES), format_
    for number, page in enumerate(PAGES):
        answer = house.ask("agent", "GET", f"/v1/tools/painted{number}")
        assert answer.body["description"] == page
        is_no_page(answer.headers)
        for method, path in (("GET", f"/v1/tools/{quote(page, '')}"), ("GET", f"/{quote(page)}")):
            refused = house.ask("agent", method, path)
            is_no_page(refused.headers)
            assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ELSEWHERE)
def test_nothing_leads_elsewhere(house: Busy, path: str) -> None:
    for who in ("admin", "nobody"):
        for method in ("GET", "POST"):
            answer = house.ask(who, method, path)
            assert answer.status in {200, 400, 401, 404, 405}, answer
            is_no_page(answer.headers)


def test_a_session_that_a_client_chose_is_none(house: Busy) -> None:
    key = house.secrets["agent"]
    chosen = {"Mcp-Session-Id": "chosen-by-another", "Cookie": "session=chosen-by-another"}
    begun = house.server.ask("POST", "/mcp", key=key, body=BEGIN, headers=chosen)
    given = begun.headers["mcp-session-id"]
    assert (begun.status, "chosen" in given) == (200, False)
    for id_, status in (("chosen-by-another", 404), (given, 200)):
        sent = {"Mcp-Session-Id": id_}
        assert house.server.ask("POST", "/mcp", key=key, body=PING, headers=sent).status == status


def test_without_its_headers_an_answer_could_be_framed_and_guessed_at(tmp_path: Path) -> None:
    """The guard-off control."""
    bare = "from toolgate.server import headers; headers.SAFE = headers.CLOSED = (); "
    with busy(tmp_path, before=bare) as served:
        for path in ("/v1/tools", "/nowhere", "/mcp"):
            answer = served.ask("agent", "GET", path)
            assert SAFE.keys() & answer.headers.keys() <= {"cache-control"}
