"""What a connection may send before anyone knows who it is, over raw sockets to a real server."""

import http.client
import socket
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.server.serving import Serving
from toolgate.server.problems import WIRE

# Short enough to see them pass.
IMPATIENT = (
    "from toolgate.server import body, limits\n"
    "limits.HEADER_SECONDS = 0.5; body.SECONDS = 0.5; limits.BODY_SECONDS = 1.5\n"
    "limits.IDLE_SECONDS = 1.0\n"
)
# The guards, taken away.
PATIENT = (
    "from toolgate.server import body, limits\n"
    "limits.MAX_HEADER_BYTES = 10**9; limits.HEADER_SECONDS = body.SECONDS = 600.0\n"
    "limits.BODY_SECONDS = limits.IDLE_SECONDS = 600.0\n"
    "del limits.LimitedProtocol.shutdown, limits.LimitedProtocol.on_headers_complete\n"
)
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CALL = b"POST /v1/call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with Serving(tmp_path_factory.mktemp("impatient"), before=IMPATIENT) as server:
        yield server


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with Serving(tmp_path_factory.mktemp("patient"), before=PATIENT) as server:
        yield server


def connect(server: Serving, *, seconds: float = 20.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=seconds)


def everything(connection: socket.socket) -> bytes:
    """Until the server closes; a reset is a close."""
    told = b""
    try:
        while more := connection.recv(65536):
            told += more
    except ConnectionResetError:
        pass
    return told


def one_answer(connection: socket.socket) -> bytes:
    """One whole answer on a connection that stays open."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    return b"HTTP/1.1 %d " % response.status


def exchange(server: Serving, sent: bytes, *, seconds: float = 20.0) -> bytes:
    with closing(connect(server, seconds=seconds)) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(sent)
        return everything(connection)


def status_of(told: bytes) -> int:
    return int(told.split(b" ", 2)[1])


def is_told(told: bytes, code: str) -> dict[str, Any]:
    head, _, body = told.partition(b"\r\n\r\n")
    status, sentence = WIRE[code]
    assert status_of(head) == status
    assert b"connection: close" in head.lower()
    shown = orjson.loads(body)
    assert (shown["code"], shown["detail"]) == (code, sentence)
    return shown


def header(size: int) -> bytes:
    return GET + b"X-Long: " + b"x" * size + b"\r\nConnection: close\r\n\r\n"


@pytest.mark.req("V2")
def test_headers_that_are_too_long_are_refused(impatient: Serving, patient: Serving) -> None:
    told = exchange(impatient, header(128 * 1024))
    # A client that still sends may be reset before it reads why.
    if told:
        is_told(told, "headers_too_large")
    # Sent no further than the limit, the answer is always there.
    is_told(exchange(impatient, header(200_000)[: 64 * 1024 + 1]), "headers_too_large")
    for size in (8 * 1024, 60 * 1024):
        assert status_of(exchange(impatient, header(size))) == 200
    assert status_of(exchange(patient, header(128 * 1024))) == 200, "it is the limit that refuses"


def test_many_short_headers_and_a_trailer_without_end_are_counted_too(impatient: Serving) -> None:
    is_told(exchange(impatient, GET + b"a: b\r\n" * 11_000), "headers_too_large")
    chunked = CALL % b"none" + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Long: "
    with closing(connect(impatient)) as connection:
        connection.sendall(chunked)
        assert status_of(one_answer(connection)) == 401
        try:
            for _ in range(100):
                connection.sendall(b"x" * 4096)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert b"200 OK" not in everything(connection)


def test_an_endless_header_does_not_stop_the_others(impatient: Serving) -> None:
    endless = [connect(impatient) for _ in range(20)]
    try:
        for connection in endless:
            connection.sendall(GET + b"X-Long: ")
        for _ in range(64):
            for connection in endless:
                try:
                    connection.sendall(b"x" * 16_384)
                except (BrokenPipeError, ConnectionResetError):
                    continue
            began = time.monotonic()
            assert impatient.get("/healthz").status == 200
            assert time.monotonic() - began < 5
    finally:
        for connection in endless:
            connection.close()


@pytest.mark.req("V2")
@pytest.mark.parametrize("sent", [b"", b"GET /", GET, GET + b"X-Half: ", b"\r\n\r\n"])
def test_a_connection_that_says_half_is_closed_in_time(
    impatient: Serving, patient: Serving, sent: bytes
) -> None:
    assert exchange(impatient, sent) == b""
    with pytest.raises(TimeoutError):
        exchange(patient, sent, seconds=1.5)


def test_a_second_request_has_as_little_time_as_the_first(impatient: Serving) -> None:
    for rest in (b"\r\n", b"GET /", GET):
        with closing(connect(impatient)) as connection:
            connection.sendall(GET + b"\r\n")
            assert status_of(one_answer(connection)) == 200
            connection.sendall(rest)
            assert everything(connection) == b""


@pytest.mark.req("V2")
def test_a_body_that_does_not_come_is_told_so(impatient: Serving, patient: Serving) -> None:
    def half(server: Serving) -> bytes:
        key = server.greeting["keys"]["agent"].encode()
        return CALL % key + b"Content-Length: 100\r\n\r\n{"

    is_told(exchange(impatient, half(impatient)), "request_timeout")
    with pytest.raises(TimeoutError):
        exchange(patient, half(patient), seconds=1.5)
    key = impatient.greeting["keys"]["agent"]
    assert impatient.call("echo", {"text": "x" * 500_000}, key=key).status == 200


def test_a_body_that_nobody_reads_does_not_keep_its_connection(impatient: Serving) -> None:
    with closing(connect(impatient)) as connection:
        connection.sendall(CALL % b"none" + b"Content-Length: 1000000\r\n\r\n{")
        assert status_of(one_answer(connection)) == 401
        assert everything(connection) == b""


def test_a_call_may_take_longer_than_its_request(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "slow.py").write_text(
        "import asyncio\n\n\nasync def slow() -> str:\n    await asyncio.sleep(2)\n    return 'x'\n"
    )
    (tmp_path / "tools" / "slow.yaml").write_text(
        "tools: [{name: slow, config: {module: slow, function: slow}, effect: pure}]"
    )
    with Serving(tmp_path, before=IMPATIENT) as server:
        key = server.greeting["keys"]["agent"].encode()
        whole = CALL % key + b'Content-Length: 16\r\n\r\n{"tool": "slow"}'
        # Also with the next request half sent behind it, which is then closed.
        with ExitStack() as stack:
            waiting = [stack.enter_context(closing(connect(server))) for _ in range(3)]
            # One of them has been used before: how long it was silent since is looked at meanwhile.
            waiting[0].sendall(GET + b"\r\n")
            assert one_answer(waiting[0]) == b"HTTP/1.1 200 "
            for connection, rest in zip(waiting, (b"", b"\r\n", GET), strict=True):
                connection.sendall(whole)
                connection.sendall(rest)
            for connection in waiting:
                told = everything(connection)
                assert (status_of(told), told.count(b"HTTP/1.1")) == (200, 1)


@pytest.mark.req("S3")
def test_half_a_body_does_not_delay_the_end(tmp_path: Path) -> None:
    with Serving(tmp_path) as server:
        key = server.greeting["keys"]["agent"].encode()
        with closing(connect(server)) as connection:
            sent = CALL % key + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n{"
            connection.sendall(sent)
            assert status_of(connection.recv(65536)) == 100, "the server waits for the body"
            server.process.terminate()
            assert server.process.wait(10) == 0


def test_the_end_would_wait_for_half_a_body_without_the_guard(tmp_path: Path) -> None:
    with Serving(tmp_path, before=PATIENT) as server:
        key = server.greeting["keys"]["agent"].encode()
        with closing(connect(server)) as connection:
            sent = CALL % key + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n{"
            connection.sendall(sent)
            assert status_of(connection.recv(65536)) == 100
            server.process.terminate()
            assert everything_within(connection, 1.5) is None
        assert server.process.wait(10) == 0


def everything_within(connection: socket.socket, seconds: float) -> bytes | None:
    connection.settimeout(seconds)
    try:
        return everything(connection)
    except TimeoutError:
        return None


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


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00", b"NOTHING\r\n\r\n"])
def test_what_is_not_http_is_told_so(impatient: Serving, sent: bytes) -> None:
    is_told(exchange(impatient, sent), "malformed_request")


@pytest.mark.req("V2")
def test_health_is_told_also_when_nobody_else_is_let_in(tmp_path: Path) -> None:
    crowded = "from toolgate.server import limits\nlimits.MAX_CONCURRENT = 3\n"
    with Serving(tmp_path, before=crowded) as server, ExitStack() as stack:
        key = server.greeting["keys"]["agent"]
        for _ in range(2):
            half = stack.enter_context(closing(connect(server)))
            half.sendall(CALL % key.encode() + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
            assert status_of(half.recv(65536)) == 100
        assert server.get("/v1/tools", key).status == 503
        for path in ("/healthz", "/readyz", "/healthz?now"):
            assert server.get(path).status == 200


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize(("guard", "status"), [("on", 200), ("off", 503)])
def test_connections_that_ask_for_nothing_keep_nobody_out(
    tmp_path: Path, guard: str, status: int
) -> None:
    crowded = "from toolgate.server import limits\nlimits.MAX_CONCURRENT = 4\n"
    if guard == "off":
        crowded += "limits.LimitedProtocol._make_room = lambda self: None\n"
    with (
        Serving(tmp_path, before=crowded) as server,
        ExitStack() as stack,
    ):
        key = server.greeting["keys"]["agent"]
        silent = [stack.enter_context(closing(connect(server))) for _ in range(6)]
        assert server.get("/v1/tools", key).status == status
        if guard == "on":
            assert everything(silent[0]) == b"", "the one that was silent for longest"
            silent[-1].sendall(CALL % key.encode() + b"Content-Length: 15\r\n\r\n")
            silent[-1].sendall(b'{"tool":"none"}')
            assert one_answer(silent[-1]) == b"HTTP/1.1 404 "


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


@pytest.mark.req("V3")
def test_a_connection_is_kept_while_it_is_used_and_closed_once_it_is_not(
    impatient: Serving, patient: Serving
) -> None:
    asked = GET + b"\r\n"
    with closing(connect(impatient)) as used, closing(connect(patient)) as kept:
        # Longer in all than it may be silent, never so long between two requests.
        for _ in range(5):
            used.sendall(asked)
            assert one_answer(used) == b"HTTP/1.1 200 "
            time.sleep(0.4)
        kept.sendall(asked)
        assert one_answer(kept) == b"HTTP/1.1 200 "
        silent_since = time.monotonic()
        assert everything(used) == b"", "closed, and nothing was said any more"
        assert time.monotonic() - silent_since < 10
        kept.sendall(asked)
        assert one_answer(kept) == b"HTTP/1.1 200 "
