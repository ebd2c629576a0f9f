"""A model behind an API on loopback: what it says is written down, how it is spoken to is checked.

It keeps nothing between requests: what comes next follows from what was said. So a turn that is
tried again hears the same.
"""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

import jsonschema_rs
import orjson

KEY = "sk-of-this-test"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Use(NamedTuple):
    """A tool that the model wants to be called."""

    tool: str
    args: dict[str, Any]


class OddError(Exception):
    """Why the real API would answer 400."""


class Heard(NamedTuple):
    """What a request holds, whichever API it came to."""

    tools: Mapping[str, Any]
    # Since the person last spoke.
    rounds: int
    results: Sequence[str]


Api = Callable[[Mapping[str, str], dict[str, Any], Callable[[Heard], "str | Use"]], dict[str, Any]]


class Model:
    """Uses its tools one by one, and then says what the last one answered."""

    def __init__(self, apis: Mapping[str, Api], *uses: Use) -> None:
        self._apis = apis
        self._uses = uses
        self.heard: list[Heard] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            # Clients keep their connections.
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                given = {name.lower(): value for name, value in self.headers.items()}
                status, body = outer.answer(self.path, given, orjson.loads(raw))
                payload = orjson.dumps(body)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(
        self, path: str, headers: Mapping[str, str], request: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        api = self._apis.get(path)
        if api is None:
            return 404, _error(f"There is nothing at {path}.")
        if KEY not in (headers.get("x-api-key"), headers.get("authorization", "")[7:]):
            return 401, _error("Incorrect API key provided.")
        try:
            return 200, api(headers, request, self.next)
        except OddError as error:
            return 400, _error(str(error))

    def next(self, heard: Heard) -> str | Use:
        """What it says to that."""
        for name, schema in heard.tools.items():
            check_tool(name, schema)
        self.heard.append(heard)
        if heard.rounds == len(self._uses):
            return f"The shop says: {summary(heard.results[-1])}"
        use = self._uses[heard.rounds]
        if use.tool not in heard.tools:
            raise OddError(f"The model knows no tool {use.tool}.")
        return use

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def check_tool(name: str, schema: Any) -> None:
    """Both vendors take no other names, and only schemas of objects."""
    if _NAME.fullmatch(name) is None:
        raise OddError(f"{name!r} is no name for a tool.")
    given = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    if given.get("type") != "object":
        raise OddError(f"The parameters of {name} are no schema of an object.")
    try:
        jsonschema_rs.validator_for(given)
    except ValueError as error:
        raise OddError(f"The parameters of {name} are no schema: {error}") from None


def check_answered(asked: Sequence[str], answered: Sequence[str]) -> None:
    """An API wants a result for each call, right behind it, and no others."""
    if sorted(asked) != sorted(answered):
        raise OddError(f"Calls {list(asked)} were answered by results for {list(answered)}.")


def summary(result: str) -> str:
    """What a model would make of a result: of an error, its sentence."""
    try:
        told = orjson.loads(result)
    except orjson.JSONDecodeError:
        return result
    error = cast("dict[str, Any]", told).get("error") if isinstance(told, dict) else None
    return result if error is None else error["message"]


def _error(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
