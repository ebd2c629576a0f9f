"""Raw sockets to a real server, and servers whose patience is short or endless."""

import http.client
import socket
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import orjson

from tests.server.busy import Busy
from tests.server.serving import Serving
from toolgate.server.problems import WIRE

# Short enough to see them pass.
IMPATIENT = (
    "from toolgate.server import body, limits, taking\n"
    "limits.HEADER_SECONDS = 0.5; body.SECONDS = 0.5; limits.BODY_SECONDS = 1.5\n"
    "limits.IDLE_SECONDS = taking.SECONDS = 1.0\n"
)
# The guards, taken away.
PATIENT = (
    "from toolgate.server import body, limits, taking\n"
    "limits.MAX_HEADER_BYTES = 10**9; limits.HEADER_SECONDS = body.SECONDS = 600.0\n"
    "limits.BODY_SECONDS = limits.IDLE_SECONDS = taking.SECONDS = 600.0\n"
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
TOOLS = b"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
CALL = b"POST /v1/call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
# A request that begins well: of what it sends as its body nobody can read the end.
BROKEN = CALL + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nnone\r\n\r\n"


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


def everything_within(connection: socket.socket, seconds: float) -> bytes | None:
    connection.settimeout(seconds)
    try:
        return everything(connection)
    except TimeoutError:
        return None


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


def untaken(server: Serving, more: bytes = b"") -> socket.socket:
    """A connection with a large answer, of which nothing has been read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n")
    key = server.greeting["keys"]["agent"].encode()
    connection.sendall(b"Authorization: Bearer %b\r\n%b\r\n" % (key, more))
    return connection


def is_let_go(server: Serving, seconds: float) -> bool:
    """Whether the server has closed it: its peer, who reads nothing, does not hear of that."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not held_by(server):
            return True
        time.sleep(0.05)
    return False


def held(house: Busy, name: str) -> tuple[Path, bytes]:
    """A call that lasts until its file is there."""
    path = house.server.root / name
    body = b'{"tool": "hold", "args": {"path": "%b"}}' % str(path).encode()
    head = CALL % house.secrets["agent"].encode()
    return path, head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def held_by(server: Serving) -> int:
    """How many connections both sides hold."""
    return sum(state == "01" for state in _states(server))


def _states(server: Serving) -> list[str]:
    """Of the server's own connections, as the system writes them."""
    port = f":{server.port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return [line[3] for line in lines if line[1].endswith(port)]
