"""What a connection may send before anyone knows who it is, over raw sockets to a real server."""

import socket
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.server.raw import (
    CALL,
    GET,
    IMPATIENT,
    PATIENT,
    connect,
    everything,
    everything_within,
    exchange,
    is_told,
    one_answer,
    status_of,
)
from tests.server.serving import Serving


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
