"""So many requests are answered at a time, and who asks for nothing takes nobody's place."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from tests.house import until
from tests.server.busy import busy
from tests.server.raw import (
    BROKEN,
    CALL,
    EVENTS,
    GET,
    NARROW,
    TOOLS,
    connect,
    everything,
    everything_within,
    held,
    held_by,
    is_told,
    one_answer,
    status_of,
    untaken,
)
from tests.server.serving import Serving
from tests.thorough import some

ROOM_FOR = "from toolgate.server import limits\nlimits.MAX_CONCURRENT = %d\n"
# After this method, a connection could not be asked to go.
NOT_SILENT = """\
done = limits.LimitedProtocol.%(method)s
def kept(self):
    done(self)
    self._silent.discard(self)
limits.LimitedProtocol.%(method)s = kept
"""
# Whether who is counted as silent is whoever waits for no answer, at every request and connection.
CHECKED = """\
import sys
from toolgate.server.limits import LimitedProtocol as Limited
looked = {name: getattr(Limited, name) for name in ("connection_made", "on_headers_complete")}
def look(self):
    # Of one that is being closed it does not matter.
    open_ = {one for one in self.connections if not one.transport.is_closing()}
    found = {one for one in open_ if not one._is_answering()} == open_ & self._silent
    found = found and self._silent <= self.connections
    print("counted", "well" if found else "wrong", file=sys.stderr, flush=True)
def made(self, transport):
    looked["connection_made"](self, transport)
    look(self)
def headed(self):
    look(self)
    looked["on_headers_complete"](self)
Limited.connection_made, Limited.on_headers_complete = made, headed
"""


@contextmanager
def streaming(server: Serving) -> Generator[socket.socket]:
    """A connection whose request is answered for as long as it is open."""
    with closing(connect(server)) as connection:
        connection.sendall(EVENTS % server.greeting["keys"]["agent"].encode())
        assert status_of(connection.recv(65536)) == 200
        yield connection


@pytest.mark.req("V2")
async def test_health_is_told_also_when_nobody_else_is_let_in(tmp_path: Path) -> None:
    with Serving(tmp_path, before=ROOM_FOR % 3) as server, ExitStack() as stack:
        key = server.greeting["keys"]["agent"]
        # To the last one: so many are answered, and not one less.
        streams = [stack.enter_context(streaming(server)) for _ in range(3)]
        for _ in range(3):
            told = server.get("/v1/tools", key)
            assert (told.status, told.body["code"]) == (503, "overloaded")
            assert told.headers["retry-after"] == "1"
            assert told.headers["content-type"] == "application/problem+json"
        assert server.log.count("too many requests") == 1, "not once for each of them"
        for path in ("/healthz", "/readyz", "/healthz?now"):
            assert server.get(path).status == 200
        streams[0].close()
        await until(lambda: server.get("/v1/tools", key).status == 200)


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize(("guard", "status"), [("on", 200), ("off", 503)])
def test_connections_that_ask_for_nothing_keep_nobody_out(
    tmp_path: Path, guard: str, status: int
) -> None:
    crowded = ROOM_FOR % 4
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
    crowded = ROOM_FOR % 3 + "limits.IDLE_SECONDS = 600.0\n"
    if guard == "off":
        crowded += NOT_SILENT % {"method": "_rest"}
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
    crowded = ROOM_FOR % 3
    if guard == "off":
        crowded += NOT_SILENT % {"method": "on_headers_complete"}
    with Serving(tmp_path, before=crowded) as server, ExitStack() as stack:
        key = server.greeting["keys"]["agent"]
        listening = stack.enter_context(streaming(server))
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
@pytest.mark.parametrize(("guard", "status"), [("on", 200), ("off", 503)])
def test_one_that_came_while_all_were_busy_keeps_nobody_from_going_on(
    tmp_path: Path, guard: str, status: int
) -> None:
    crowded = ROOM_FOR % 3
    if guard == "off":
        # Room was only made for who connects.
        crowded += "room = limits.LimitedProtocol._make_room\n"
        crowded += "def made(self):\n    if not self.url: room(self)\n"
        crowded += "limits.LimitedProtocol._make_room = made; limits.LimitedProtocol.url = b''\n"
    with busy(tmp_path, before=crowded) as house, ExitStack() as stack:
        key = house.secrets["agent"].encode()
        for _ in range(2):
            listening = stack.enter_context(closing(connect(house.server)))
            listening.sendall(EVENTS % key)
            assert status_of(listening.recv(65536)) == 200
        path, call = held(house, "held")
        used = stack.enter_context(closing(connect(house.server)))
        used.sendall(call)
        asyncio.run(until(Path(f"{path}.begun").exists))
        # Taken before the call ends: nobody can be asked to go for it.
        silent = stack.enter_context(closing(connect(house.server)))
        path.touch()
        assert one_answer(used) == b"HTTP/1.1 200 "
        used.sendall(TOOLS % key)
        assert status_of(one_answer(used)) == status
        if guard == "on":
            assert everything(silent) == b""


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
@pytest.mark.parametrize(("guard", "most"), [("on", 5), ("off", 12)])
async def test_who_does_not_take_an_answer_makes_room_and_leaves_nothing_behind(
    tmp_path: Path, guard: str, most: int, more: bytes
) -> None:
    crowded = NARROW + ROOM_FOR % 4
    if guard == "off":
        crowded += "limits.LimitedProtocol.dismiss = limits.LimitedProtocol.part\n"
    with Serving(tmp_path, before=crowded) as server, ExitStack() as stack:
        key = server.greeting["keys"]["agent"]
        for _ in range(12):
            taker = stack.enter_context(closing(untaken(server, more)))
            # It is answered, and takes a part of it.
            assert status_of(taker.recv(1024)) == 200
        assert server.get("/v1/tools", key).status == 200
        if guard == "on":
            await until(lambda: held_by(server) <= most)
        else:
            assert held_by(server) >= most


@pytest.mark.req("V2", "V3")
def test_who_is_silent_is_counted_without_a_mistake(tmp_path: Path) -> None:
    """Many connections that do everything a connection can, in an order that is drawn."""
    drawn = Random(5)  # noqa: S311  nothing secret is drawn
    with Serving(tmp_path, before=CHECKED + ROOM_FOR % 8) as server, ExitStack() as stack:
        key = server.greeting["keys"]["agent"].encode()
        whole, half = TOOLS % key, CALL % key + b"Content-Length: 20\r\n\r\n{"
        said = (
            b"",
            GET,
            whole,
            whole * 3,
            whole + half,
            half,
            half + b"}" + b" " * 18 + whole,
            CALL % b"none" + b"Content-Length: 4\r\n\r\n",
            whole + b"none\r\n\r\n",
            whole + BROKEN % key,
            BROKEN % b"none",
            TOOLS.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") % key,
            GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + whole,
            EVENTS % key,
        )
        open_: list[socket.socket] = []
        for _ in range(some(600, 6_000)):
            doing = drawn.random()
            if not open_ or doing < 0.4:
                open_.append(stack.enter_context(closing(connect(server))))
            one = drawn.choice(open_)
            with suppress(BrokenPipeError, ConnectionResetError):
                if doing < 0.8:
                    one.sendall(drawn.choice(said))
                else:
                    open_.remove(one)
                    one.close()
        assert server.get("/healthz").status == 200
        assert server.log.count("counted wrong") == 0
        assert server.log.count("counted well") > 200
