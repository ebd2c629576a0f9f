"""An answer in one piece is the answer that two pieces would be, and is left where it cannot be."""

import socket
from pathlib import Path

import pytest

from tests.server.serving import Serving

pytestmark = pytest.mark.req("V2")
OFF = "from toolgate.server.whole import Whole\nWhole.write = lambda *_: False\n"
REQUESTS = (
    b"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
)


def answers(root: Path, before: str = "") -> list[list[bytes]]:
    """The lines of each answer, without what differs by the moment."""
    root.mkdir()
    with Serving(root, before=before) as server:
        key = server.greeting["keys"]["agent"].encode()
        found: list[list[bytes]] = []
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as line:
            for request in REQUESTS:
                line.sendall(request.replace(b"KEY", key))
                head, _, body = _read(line, is_head=request.startswith(b"HEAD"))
                lines = sorted(one for one in head.split(b"\r\n") if not one.startswith(b"date"))
                found.append([*lines, body])
        return found


def _read(line: socket.socket, *, is_head: bool) -> tuple[bytes, bytes, bytes]:
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += line.recv(65_536)
    head, end, body = raw.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length and not is_head:
        body += line.recv(65_536)
    return head, end, body


def test_one_piece_says_what_two_pieces_say(tmp_path: Path) -> None:
    together, apart = answers(tmp_path / "a"), answers(tmp_path / "b", before=OFF)
    assert together == apart
    large, small, nothing, _last = (one[-1] for one in together)
    # One that is not copied, and one that is.
    assert len(large) > 64 * 1024 > len(small) > len(nothing) == 0
    assert b"connection: close" in together[3]
