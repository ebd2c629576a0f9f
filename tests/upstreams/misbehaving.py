"""A server that does wrong what can be done wrong. It speaks the older revision, by hand.

As a program: `python -m tests.upstreams.misbehaving` on its standard streams. Over HTTP: `serving`.
The fault is the name of the tool that is called; `ok` is the one that works. Faults of the start
are given to it when it begins.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

Json = dict[str, Any]
TOOLS = [{"name": "ok", "inputSchema": {"type": "object"}}]
WELCOME: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}, "resources": {}},
    "serverInfo": {"name": "misbehaving", "version": "1"},
}


def text(said: str) -> Json:
    return {"content": [{"type": "text", "text": said}], "isError": False}


EMPTY: Json = {"content": [{"type": "resource"}], "isError": False}


def result(id_: Any, value: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": value}).encode()


def error(id_: Any, code: int, message: str = "no") -> bytes:
    told = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "error": told}).encode()


def note(method: str, params: Json | None = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode()


def answer(said: Json) -> bytes | None:
    """What is right, whatever carries it; `None` for what is not answered."""
    id_, method = said.get("id"), said.get("method")
    if id_ is None or method is None:
        return None
    if method == "initialize":
        return result(id_, WELCOME)
    if method == "tools/list":
        return result(id_, {"tools": TOOLS})
    if method == "resources/list":
        # A cursor that leads back to itself.
        return result(id_, {"resources": [], "nextCursor": "again"})
    if method == "tools/call" and said["params"]["name"] == "ok":
        return result(id_, text("ok"))
    return error(id_, -32601, f"no {method}")


# As a program.


def out(raw: bytes) -> None:
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def endless(_: Any) -> None:
    piece = b"x" * 1_000_000
    with suppress(OSError):
        while True:
            out(piece)


def asks(method: str) -> Callable[[Any], None]:
    """Asks us something first, and answers with what it was told."""

    def run(id_: Any) -> None:
        out(json.dumps({"jsonrpc": "2.0", "id": "q", "method": method, "params": {}}).encode())
        out(b"\n")
        told = json.loads(sys.stdin.readline())
        out(result(id_, text(json.dumps(told.get("error", told.get("result")), sort_keys=True))))
        out(b"\n")

    return run


LINES: dict[str, Callable[[Any], object]] = {
    "crash": lambda _: os._exit(3),
    "half a line": lambda id_: (out(result(id_, text("half"))[:20]), os._exit(0)),
    "closed output": lambda _: (os.close(1), time.sleep(60)),
    "endless line": endless,
    "bad utf-8": lambda id_: out(b'{"jsonrpc":"2.0","id":%d,"result":{"x":"\xff\xfe"}}\n' % id_),
    "only noise": lambda _: [out(b"INFO: working\n") for _ in range(2_000)],
    "noise first": lambda id_: out(
        b"INFO: working\nnot json\n\n" + result(id_, text("ok")) + b"\n"
    ),
    "no answer": lambda _: None,
    "wrong id": lambda _: out(result(999_999, text("lost")) + b"\n"),
    "text id": lambda id_: out(result(str(id_), text("lost")) + b"\n"),
    "twice": lambda id_: out((result(id_, text("ok")) + b"\n") * 2),
    "a list": lambda _: out(b"[1, 2]\n"),
    "no result": lambda id_: out(
        json.dumps({"jsonrpc": "2.0", "id": id_, "result": 1}).encode() + b"\n"
    ),
    "both": lambda id_: out(
        json.dumps({"jsonrpc": "2.0", "id": id_, "result": {}, "error": {"code": 1}}).encode()
        + b"\n"
    ),
    "odd error": lambda id_: out(b'{"jsonrpc":"2.0","id":%d,"error":"oh"}\n' % id_),
    "internal error": lambda id_: out(error(id_, -32603) + b"\n"),
    "invalid params": lambda id_: out(error(id_, -32602) + b"\n"),
    "storm": lambda id_: out(
        (note("notifications/tools/list_changed") + b"\n") * 5_000 + result(id_, text("ok")) + b"\n"
    ),
    "odd notes": lambda id_: out(
        note("notifications/progress", {"progressToken": [], "progress": "x"})
        + b'\n{"jsonrpc":"2.0","method":7}\n'
        + note("notifications/message", {"level": 3})
        + b"\n"
        + result(id_, text("ok"))
        + b"\n"
    ),
    "empty resource": lambda id_: out(result(id_, EMPTY) + b"\n"),
    "stderr flood": lambda id_: (
        sys.stderr.write("x" * 5_000_000 + "\n"),
        sys.stderr.flush(),
        out(result(id_, text("ok")) + b"\n"),
    ),
    "asks sampling": asks("sampling/createMessage"),
    "asks roots": asks("roots/list"),
    "asks elicitation": asks("elicitation/create"),
    "asks ping": asks("ping"),
}
# Tools that tell how often it heard something.
COUNTED = {"cancelled": "notifications/cancelled", "pinged": "ping"}


def main(fault: str) -> None:
    if fault == "start: exits":
        for number in range(30):
            sys.stderr.write(f"step {number}\x1b[31m\n")
        sys.stderr.write("no licence for KEY-123\n")
        sys.exit(7)
    if fault == "start: silent":
        time.sleep(3600)
    count = {"notifications/cancelled": 0, "ping": 0}
    for raw in sys.stdin:
        said = json.loads(raw)
        if said.get("method") in count:
            count[said["method"]] += 1
        if fault == "start: dies of the first question" and said.get("method") == "server/discover":
            os._exit(1)
        if fault == "start: unknown revision" and said.get("method") == "initialize":
            out(result(said["id"], WELCOME | {"protocolVersion": "1999-01-01"}) + b"\n")
            continue
        name = said["params"]["name"] if said.get("method") == "tools/call" else ""
        if name in COUNTED:
            out(result(said["id"], text(str(count[COUNTED[name]]))) + b"\n")
            continue
        if name == "slow":
            time.sleep(0.3)
            out(result(said["id"], text("ok")) + b"\n")
            continue
        if name in LINES:
            LINES[name](said["id"])
            continue
        body = answer(said)
        if body is not None:
            out(body + b"\n")


# Over HTTP.

Writer = asyncio.StreamWriter


def plain(body: bytes, status: int = 200, kind: str = "application/json", more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    )
    return head.encode() + body


def last(body: bytes, status: int = 200, kind: str = "application/json", more: str = "") -> bytes:
    """The answer before it hangs up."""
    return plain(body, status, kind, f"Connection: close\r\n{more}")


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def event(body: bytes) -> bytes:
    return b"data: " + body + b"\n\n"


async def _flood(writer: Writer, id_: Any) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    with suppress(OSError):
        while not writer.is_closing():
            writer.write(b" " * 1_000_000)
            await writer.drain()


def writes(make: Callable[[Any], bytes]) -> Callable[[Writer, Any], Awaitable[None]]:
    async def run(writer: Writer, id_: Any) -> None:
        writer.write(make(id_))

    return run


async def _silent(writer: Writer, id_: Any) -> None:
    await asyncio.sleep(3600)


def _stream_then(make: Callable[[Any], bytes]) -> Callable[[Writer, Any], Awaitable[None]]:
    return writes(lambda id_: STREAM + make(id_))


ANSWERS: dict[str, Callable[[Writer, Any], Awaitable[None]]] = {
    "hangs up": writes(lambda _: b""),
    "half a head": writes(lambda _: b"HTTP/1.1 200 OK\r\nContent-Ty"),
    "half a body": writes(lambda id_: last(result(id_, text("half")))[:-9]),
    "no answer": _silent,
    "no HTTP": writes(lambda _: b"SSH-2.0-OpenSSH_9.6\r\n"),
    "no JSON": writes(lambda _: last(b"<html>")),
    "html": writes(lambda _: last(b"<html>", kind="text/html")),
    "wrong id": writes(lambda _: last(result(999_999, text("lost")))),
    "a list": writes(lambda _: last(b"[]")),
    "no result": writes(lambda id_: last(result(id_, 3))),
    "empty resource": writes(lambda id_: last(result(id_, EMPTY))),
    "accepted": writes(lambda _: last(b"", 202)),
    "status 500": writes(lambda _: last(b"oh", 500, "text/plain")),
    "status 401": writes(lambda _: last(b"", 401)),
    "status 429": writes(lambda _: last(b"", 429, more="Retry-After: 7\r\n")),
    "elsewhere": writes(lambda _: last(b"", 307, more="Location: http://192.0.2.1/mcp\r\n")),
    "half an address": writes(lambda _: last(b"", 307, more="Location: http://[::1\r\n")),
    "internal error": writes(lambda id_: last(error(id_, -32603))),
    "invalid params": writes(lambda id_: last(error(id_, -32602), 400)),
    "compressed": writes(lambda id_: last(b"\x1f\x8b", more="Content-Encoding: gzip\r\n")),
    "flood": _flood,
    "long head": writes(lambda _: b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000),
    "stream ends": _stream_then(lambda _: event(note("notifications/x"))),
    "stream breaks off": _stream_then(
        lambda id_: b"retry: 1\nid: 1\ndata: \n\nid: 2\ndata: " + result(id_, text("half"))[:20]
    ),
    "stream of noise": _stream_then(
        lambda id_: b"data: {oh\n\n: hm\n\n" + event(result(id_, text("ok")))
    ),
    "stream twice": _stream_then(lambda id_: event(result(id_, text("ok"))) * 2),
    "stream storm": _stream_then(
        lambda id_: (
            event(note("notifications/tools/list_changed")) * 5_000 + event(result(id_, text("ok")))
        )
    ),
}


class Server:
    """The HTTP side. `sessions` are those that it knows; a test may forget them."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.heard: list[tuple[str, Json, dict[str, str]]] = []
        self.port = 0
        # Where `led away` leads.
        self.elsewhere = ""
        # What it says on the stream of no call; without it there is no such stream.
        self.stream: Callable[[Writer], Awaitable[None]] | None = None
        # Our answers to what it asks are taken once this is set.
        self.takes = asyncio.Event()
        self.takes.set()
        # How it says that there is no such stream, and whether it begins no session.
        self.no_stream = 405
        self.refuses = False
        # Whether it answers requests at all, or only takes them.
        self.answers = asyncio.Event()
        self.answers.set()
        # Sessions begin once this is set.
        self.begins = asyncio.Event()
        self.begins.set()

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                await writer.drain()
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: Writer) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        verb = head[0].split()[0]
        said: Json = json.loads(body) if body else {}
        self.heard.append((verb, said, headers))
        if verb == "GET" and self.stream is not None:
            writer.write(STREAM)
            await self.stream(writer)
            return False
        if verb == "POST" and "method" not in said:
            await self.takes.wait()
        if verb != "POST":
            writer.write(plain(b"", self.no_stream if verb == "GET" else 200))
            return True
        await self.answers.wait()
        method = said.get("method")
        if method == "initialize":
            await self.begins.wait()
        if method == "initialize" and not self.refuses:
            session = f"s{len(self.heard)}"
            self.sessions.add(session)
            writer.write(plain(result(said["id"], WELCOME), more=f"Mcp-Session-Id: {session}\r\n"))
            return True
        if method == "server/discover":
            writer.write(plain(error(said["id"], -32601), 404))
            return True
        if headers.get("mcp-session-id") not in self.sessions:
            writer.write(plain(b"", 404))
            return True
        name = said["params"]["name"] if method == "tools/call" else ""
        if name == "led away":
            to = f"Location: {self.elsewhere}\r\n"
            here = head[0].split()[1] == self.elsewhere
            made = plain(result(said["id"], text("ok"))) if here else plain(b"", 307, more=to)
            writer.write(made)
            return True
        if name in ANSWERS:
            await ANSWERS[name](writer, said["id"])
            return False
        made = answer(said)
        writer.write(plain(made) if made is not None else plain(b"", 202))
        return True


@asynccontextmanager
async def serving(port: int = 0) -> AsyncGenerator[Server]:
    made = Server()
    tasks: set[asyncio.Task[None]] = set()

    async def begun(reader: asyncio.StreamReader, writer: Writer) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(asyncio.CancelledError):
            await made.serve(reader, writer)
        tasks.discard(task)
        writer.close()

    server = await asyncio.start_server(begun, "127.0.0.1", port)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
