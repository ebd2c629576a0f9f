"""A real `toolgate serve` in a folder of its own, and ways to talk to it."""

import http.client
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson

from tests.servers.hatchery import Hatched, hatched

COMMAND = (sys.executable, "-c", "from toolgate.cli.main import main; main()")


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        return orjson.loads(self.text)


class Serving:
    """The process, from its greeting to its end."""

    def __init__(self, root: Path, *more: str, before: str = "") -> None:
        """`before` is Python that runs first, for limits that a test cannot wait for."""
        self._log = (root / "serve.log").open("ab")
        self.root = root
        self.process = self._started(["serve", "--port", "0", "--json", *more], before)
        self.greeting: dict[str, Any] = self._greeting()

    def _started(self, arguments: list[str], before: str) -> subprocess.Popen[bytes] | Hatched:
        """Anew, where what is loaded is not to be loaded yet, or is loaded again."""
        if not before and "--reload" not in arguments:
            return hatched(arguments, cwd=self.root, env=os.environ, stderr=self._log)
        return subprocess.Popen(
            [*COMMAND[:2], before + COMMAND[2], *arguments],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def _greeting(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        text = b""
        for line in self.process.stdout:
            text += line
            if line == b"}\n":
                return orjson.loads(text)
        raise AssertionError(f"it ended with {self.process.wait()}: {text!r}\n{self.log}")

    @property
    def log(self) -> str:
        return (self.root / "serve.log").read_text("utf-8")

    @property
    def port(self) -> int:
        return int(self.greeting["url"].rsplit(":", 1)[1])

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(40)
        finally:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    def ask(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        body: Any = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = dict(headers or {})
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        payload = raw if raw is not None else None if body is None else orjson.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=payload, headers=sent)
            response = connection.getresponse()
            shown = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, shown, response.read().decode())
        finally:
            connection.close()

    def get(self, path: str, key: str | None = None) -> Answer:
        return self.ask("GET", path, key=key)

    def call(self, tool: str, args: Any = None, *, key: str) -> Answer:
        return self.ask("POST", "/v1/call", key=key, body={"tool": tool, "args": args or {}})
