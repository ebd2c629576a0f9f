"""Where a request ends and the next begins, over raw sockets to a real server."""

import socket
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from tests.house import until
from tests.server.busy import Busy, busy
from tests.server.raw import (
    BROKEN,
    CALL,
    EVENTS,
    GET,
    TOOLS,
    connect,
    everything,
    everything_within,
    exchange,
    held,
    is_told,
    one_answer,
    status_of,
)
from tests.server.serving import Serving


@pytest.mark.req("V2")
@pytest.mark.parametrize(
    "target", [b"http://evil.example/healthz", b"http://localhost/healthz", b"*", b"evil:80", b"x"]
)
def test_a_target_that_is_not_a_path_is_refused(
    impatient: Serving, patient: Serving, target: bytes
) -> None:
    request = b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    is_told(exchange(impatient, request % target), "malformed_request")
    assert status_of(exchange(impatient, request % b"/healthz")) == 200
    if target.startswith(b"http"):
        assert status_of(exchange(patient, request % target)) == 200, "uvicorn would take it"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00",
        b"NOTHING\r\n\r\n",
        # Their target could be taken for a path.
        b"CONNECT /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT /:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_is_not_http_is_told_so(impatient: Serving, sent: bytes) -> None:
    is_told(exchange(impatient, sent), "malformed_request")


@pytest.mark.req("V2", "V3")
def test_what_comes_behind_a_body_is_no_header(impatient: Serving, patient: Serving) -> None:
    body = b'{"tool": "timestamp"}'
    sent = b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%b\r\n0\r\n%b\r\n"
    told: dict[Serving, list[int]] = {}
    for server in (impatient, patient):
        key = server.greeting["keys"]["agent"].encode()
        with_key = CALL % key
        head, trailer = with_key.split(b"Authorization", 1)
        asked = [
            with_key + sent % (len(body), body, b""),
            head + sent % (len(body), body, b"Authorization" + trailer),
            # Two keys are one too many: of the second one nothing is known.
            with_key
            + b"Idempotency-Key: a\r\n"
            + sent % (len(body), body, b"Idempotency-Key: b\r\n"),
        ]
        told[server] = [status_of(exchange(server, one)) for one in asked]
    assert told == {impatient: [200, 401, 200], patient: [200, 200, 400]}


@pytest.mark.req("V1", "V2")
@pytest.mark.parametrize("step", [1, 65536])
def test_an_offer_of_another_protocol_is_not_taken_and_its_request_stands(
    impatient: Serving, step: int
) -> None:
    """As clients ask that would rather speak HTTP/2: a body, and more requests behind it."""
    call = CALL % impatient.greeting["keys"]["agent"].encode()
    call += b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    body = b'{"tool": "echo", "args": {"text": "hi"}}'
    whole = call + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    parts = call + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    sent = whole + parts + GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with closing(connect(impatient)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(sent), step):
            connection.sendall(sent[at : at + step])
        # What comes behind the last one is nobody's.
        last = whole.replace(b"Connection: Upgrade,", b"Connection: Upgrade, close,")
        connection.sendall(last + whole)
        told = everything(connection)
    assert (told.count(b"HTTP/1.1 200 "), told.count(b'"data":{"text":"hi"}')) == (4, 3)


# No method, a header that is none, a target that is no path, two lengths.
GARBAGE = (
    b"\x16\x03\x01\x02\x00",
    b"GET /healthz HTTP/1.1\r\nnone\r\n\r\n",
    b"GET evil:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nX-Long: " + b"x" * 100_000,
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    with busy(tmp_path_factory.mktemp("framing")) as served:
        yield served


@pytest.fixture(scope="module")
def curt(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    """Where garbage ends a connection at once, whatever is on its way."""
    off = "from toolgate.server.limits import LimitedProtocol as p; p._end_with_answers = p.part; "
    with busy(tmp_path_factory.mktemp("curt"), before=off) as served:
        yield served


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("garbage", [*GARBAGE, BROKEN % b"none"], ids=range(6))
def test_garbage_behind_a_request_does_not_take_its_answer_away(
    house: Busy, curt: Busy, garbage: bytes
) -> None:
    whole = TOOLS % house.secrets["agent"].encode()
    for asked, many in ((whole, 1), (GET + b"\r\n", 1), (whole + GET + b"\r\n" + whole, 3)):
        told = exchange(house.server, asked + garbage + asked)
        assert (told.count(b"HTTP/1.1 200 "), told.count(b"HTTP/1.1")) == (many, many)
        assert told.count(b"connection: close") == 1, "the last one says that it is the last"
    assert exchange(curt.server, GET + b"\r\n" + garbage) == b"", "it is the guard that answers"


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("garbage", [*GARBAGE[:4], BROKEN % b"none"], ids=range(5))
async def test_garbage_that_comes_while_a_call_runs_does_not_take_its_answer_away(
    house: Busy, garbage: bytes
) -> None:
    path, call = held(house, f"held-{abs(hash(garbage))}")
    with closing(connect(house.server)) as connection:
        connection.sendall(call)
        await until(Path(f"{path}.begun").exists)
        for _ in range(3):
            connection.sendall(garbage)
        # What comes behind it is read by nobody, and is not answered.
        connection.sendall(call)
        assert everything_within(connection, 0.5) is None, "it is not closed before"
        path.touch()
        connection.settimeout(20)
        told = everything(connection)
    assert (status_of(told), told.count(b"HTTP/1.1"), told.count(b'"let go"')) == (200, 1, 1)


@pytest.mark.req("V2", "V3")
async def test_what_comes_behind_garbage_is_thrown_away_and_holds_nothing_up(house: Busy) -> None:
    path, call = held(house, "flooded")
    with closing(connect(house.server)) as connection:
        connection.sendall(call)
        await until(Path(f"{path}.begun").exists)
        connection.sendall(GET + b"\r\n" + GARBAGE[0])
        # More than the system would keep for who does not read.
        for _ in range(64):
            connection.sendall(b"x" * 1024 * 1024)
        path.touch()
        told = everything(connection)
    assert (told.count(b"HTTP/1.1 200 "), told.count(b"HTTP/1.1")) == (2, 2)


@pytest.mark.req("V2")
def test_a_body_that_breaks_behind_its_answer_is_told_nothing_more(house: Busy) -> None:
    head, rest = (BROKEN % b"none").split(b"none\r\n\r\n", 1)[0], b"none\r\n\r\n"
    events = EVENTS % house.secrets["agent"].encode()
    streamed = events.removesuffix(b"\r\n") + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
    with closing(connect(house.server)) as connection:
        connection.sendall(head)
        assert status_of(one_answer(connection)) == 401
        connection.sendall(rest)
        assert everything(connection) == b""
    with closing(connect(house.server)) as connection:
        connection.sendall(streamed)
        assert status_of(connection.recv(65536)) == 200
        connection.sendall(rest)
        assert b"HTTP/1.1" not in everything(connection), "not into the middle of a stream"
    # The positive control: who was not answered yet is told.
    key = house.secrets["agent"].encode()
    is_told(exchange(house.server, BROKEN % key), "malformed_request")


@pytest.mark.req("V2", "V3")
def test_of_many_requests_at_once_so_many_are_answered(house: Busy, tmp_path: Path) -> None:
    asked = (GET + b"\r\n") * 500
    told = exchange(house.server, asked)
    assert 0 < told.count(b"HTTP/1.1 200 ") == told.count(b"HTTP/1.1") <= 65
    assert house.ask("agent", "GET", "/v1/tools").status == 200
    endless = "from toolgate.server import limits\nlimits.MAX_PIPELINED = 10**9\n"
    with Serving(tmp_path, before=endless) as server, closing(connect(server)) as connection:
        connection.sendall(asked + GET + b"Connection: close\r\n\r\n")
        assert everything(connection).count(b"HTTP/1.1 200 ") == 501, "it is the limit that ends it"
