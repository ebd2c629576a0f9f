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
    "limits.IDLE_SECONDS = limits.WRITE_SECONDS = 1.0\n"
)
# The guards, taken away.
PATIENT = (
    "from toolgate.server import body, limits\n"
    "limits.MAX_HEADER_BYTES = 10**9; limits.HEADER_SECONDS = body.SECONDS = 600.0\n"
    "limits.BODY_SECONDS = limits.IDLE_SECONDS = limits.WRITE_SECONDS = 600.0\n"
    "del limits.LimitedProtocol.shutdown, limits.LimitedProtocol.on_headers_complete\n"
)
# The system takes little for the peer, so that it is seen here what the peer takes.
NARROW = """\
import socket
from toolgate.server import limits
made = limits.LimitedProtocol.connection_made
def narrow(self, transport):
    number = transport.get_extra_info("socket").fileno()
    with socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    made(self, transport)
limits.LimitedProtocol.connection_made = narrow
"""
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
EVENTS = b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
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


@pytest.mark.req("V2")
def test_a_body_that_ends_long_after_its_answer_does_not_keep_its_connection(
    tmp_path: Path, patient: Serving
) -> None:
    def late(connection: socket.socket) -> None:
        connection.sendall(CALL % b"none" + b"Content-Length: 10\r\n\r\n{")
        assert status_of(one_answer(connection)) == 401
        # How long nothing was asked has been looked at by then.
        time.sleep(1.5)
        connection.sendall(b"x" * 9)

    with closing(connect(patient)) as kept:
        late(kept)
        kept.sendall(GET + b"\r\n")
        assert one_answer(kept) == b"HTTP/1.1 200 ", "it is the limit that closes"
    with (
        Serving(tmp_path, before=IMPATIENT + "limits.BODY_SECONDS = 600.0\n") as server,
        closing(connect(server)) as left,
    ):
        late(left)
        assert everything(left) == b""


def untaken(server: Serving) -> socket.socket:
    """A connection with a large answer, of which nothing has been read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n")
    key = server.greeting["keys"]["agent"].encode()
    connection.sendall(b"Authorization: Bearer %s\r\n\r\n" % key)
    return connection


def is_let_go(server: Serving, seconds: float) -> bool:
    """Whether the server has closed it: its peer, who reads nothing, does not hear of that."""
    port = f":{server.port:04X}"
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        # 1 is a connection that both sides hold.
        if not any(line[1].endswith(port) and line[3] == "01" for line in lines):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("more", [b"", b"GET", (GET + b"\r\n") * 100])
def test_who_takes_nothing_of_an_answer_is_cut_off(tmp_path: Path, more: bytes) -> None:
    with (
        Serving(tmp_path, before=NARROW + IMPATIENT) as server,
        closing(untaken(server)) as connection,
    ):
        connection.sendall(more)
        assert is_let_go(server, 20)
        assert len(everything(connection)) < 100_000
        assert server.log == ""


@pytest.mark.req("V3")
def test_who_takes_an_answer_slowly_gets_all_of_it(tmp_path: Path) -> None:
    with (
        Serving(tmp_path, before=NARROW + IMPATIENT) as server,
        closing(untaken(server)) as connection,
    ):
        began = time.monotonic()
        told = b""
        while more := connection.recv(8192):
            told += more
            time.sleep(0.08)
        whole = server.get("/openapi.json", server.greeting["keys"]["agent"]).body
        assert time.monotonic() - began > 2, "longer than one may take nothing"
    head, _, body = told.partition(b"\r\n\r\n")
    assert (status_of(head), orjson.loads(body)) == (200, whole)


def test_who_takes_nothing_would_be_kept_without_the_guard(tmp_path: Path) -> None:
    with (
        Serving(tmp_path, before=NARROW + PATIENT) as server,
        closing(untaken(server)),
    ):
        assert not is_let_go(server, 3)


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


@pytest.mark.req("V2")
def test_health_is_told_also_when_nobody_else_is_let_in(tmp_path: Path) -> None:
    crowded = "from toolgate.server import limits\nlimits.MAX_CONCURRENT = 3\n"
    with Serving(tmp_path, before=crowded) as server, ExitStack() as stack:
        key = server.greeting["keys"]["agent"]
        for _ in range(2):
            listening = stack.enter_context(closing(connect(server)))
            listening.sendall(EVENTS % key.encode())
            assert status_of(listening.recv(65536)) == 200
        for _ in range(3):
            told = server.get("/v1/tools", key)
            assert (told.status, told.body["code"]) == (503, "overloaded")
            assert told.headers["retry-after"] == "1"
            assert told.headers["content-type"] == "application/problem+json"
        assert server.log.count("too many requests") == 1, "not once for each of them"
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
@pytest.mark.parametrize(("guard", "status"), [("on", 200), ("off", 503)])
def test_connections_that_have_their_answers_keep_nobody_out(
    tmp_path: Path, guard: str, status: int
) -> None:
    crowded = "from toolgate.server import limits\nlimits.MAX_CONCURRENT = 4\n"
    crowded += "limits.IDLE_SECONDS = 600.0\n"
    if guard == "off":
        crowded += "limits.LimitedProtocol.is_silent = lambda self: not self.cycle\n"
    with Serving(tmp_path, before=crowded) as server, ExitStack() as stack:
        key = server.greeting["keys"]["agent"]
        answered: list[socket.socket] = []
        for _ in range(3):
            answered.append(stack.enter_context(closing(connect(server))))
            answered[-1].sendall(GET + b"\r\n")
            assert one_answer(answered[-1]) == b"HTTP/1.1 200 "
        silent = stack.enter_context(closing(connect(server)))
        assert server.get("/v1/tools", key).status == status
        if guard == "on":
            assert everything(answered[0]) == b"", "the one that was silent for longest"
            assert server.get("/v1/tools", key).status == 200
            answered[-1].sendall(GET + b"\r\n")
            assert one_answer(answered[-1]) == b"HTTP/1.1 200 "
            assert everything_within(silent, 0.1) is not None, "who has asked for nothing"


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize(("guard", "status"), [("on", 200), ("off", 503)])
def test_requests_that_are_never_sent_whole_keep_nobody_out(
    tmp_path: Path, guard: str, status: int
) -> None:
    crowded = "from toolgate.server import limits\nlimits.MAX_CONCURRENT = 4\n"
    if guard == "off":
        crowded += (
            "limits.LimitedProtocol.is_silent = (\n"
            "    lambda self: not self.cycle or self.cycle.response_complete\n"
            ")\n"
        )
    with Serving(tmp_path, before=crowded) as server, ExitStack() as stack:
        key = server.greeting["keys"]["agent"]
        listening = stack.enter_context(closing(connect(server)))
        listening.sendall(EVENTS % key.encode())
        assert status_of(listening.recv(65536)) == 200
        halves: list[socket.socket] = []
        for _ in range(2):
            halves.append(stack.enter_context(closing(connect(server))))
            halves[-1].sendall(
                CALL % key.encode() + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
            )
            assert status_of(halves[-1].recv(65536)) == 100
        assert server.get("/v1/tools", key).status == status
        if guard == "on":
            is_told(everything(halves[0]), "request_timeout")
            assert everything_within(listening, 0.1) is None, "what is answered goes on"


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
        assert everything(used) == b"", "closed, and nothing was said any more"
        kept.sendall(asked)
        assert one_answer(kept) == b"HTTP/1.1 200 "
