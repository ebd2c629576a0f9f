"""A server on loopback that speaks Composio's API, as its SDK asks for it, with faults by name."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

KEY = "ak_canary_5f3c9d1e"
PAGE = 2


def action(slug: str, *tags: str, **more: Any) -> dict[str, Any]:
    """An entry of its list, with every field that its SDK insists on."""
    toolkit = {"slug": slug.partition("_")[0].lower(), "name": "GitHub", "logo": "x"}
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    entry: dict[str, Any] = {
        "slug": slug,
        "name": slug.replace("_", " ").title(),
        "description": f"Does {slug}.",
        "input_parameters": schema,
        "output_parameters": {},
        "tags": list(tags),
        "scopes": [],
        "toolkit": toolkit,
        "version": "20261101_00",
        "available_versions": ["20261101_00"],
        "no_auth": False,
        "is_deprecated": False,
        "deprecated": {
            "available_versions": [],
            "displayName": slug,
            "is_deprecated": False,
            "toolkit": {"logo": ""},
            "version": "20261101_00",
        },
    }
    return entry | more


ACTIONS = [
    action("GITHUB_GET_ISSUE", "readOnlyHint", "important"),
    action("GITHUB_CREATE_ISSUE"),
    action("GITHUB_DELETE_REPO", "destructiveHint", "readOnlyHint"),
    action("GITHUB_OLD", is_deprecated=True),
    action("GITHUB_ODD", input_parameters={"type": "object", "properties": 7}),
]


class ComposioServer:
    """Accounts by entity; whoever has none is refused, as there."""

    def __init__(self, *entities: str) -> None:
        self.accounts = {entity: f"account of {entity}" for entity in entities}
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.listed(self)

            def do_POST(self) -> None:
                outer.executed(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def listed(self, asked: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(asked.path).query)
        self.requests.append((asked.path, dict(asked.headers), {}))
        if asked.headers.get("x-api-key") != KEY:
            self._refuse(asked, 401, 10401, "InvalidKey")
            return
        at = int(query.get("cursor", ["0"])[0])
        toolkit = query["toolkit_slug"][0].upper()
        all_of = [one for one in ACTIONS if one["slug"].startswith(toolkit)]
        page = {
            "items": all_of[at : at + PAGE],
            "next_cursor": str(at + PAGE) if at + PAGE < len(all_of) else None,
            "total_items": len(all_of),
            "current_page": 1,
            "total_pages": 1,
        }
        self._send(asked, 200, page)

    def executed(self, asked: BaseHTTPRequestHandler) -> None:
        body = json.loads(asked.rfile.read(int(asked.headers["content-length"])))
        self.requests.append((asked.path, dict(asked.headers), body))
        slug = urlsplit(asked.path).path.rsplit("/", 1)[-1]
        match slug:
            case "X_SLOW":
                self.over.wait(30)
            case "X_BROKEN":
                self._refuse(asked, 500, 500, "Internal")
            case "X_DENIED":
                self._refuse(asked, 401, 10401, "InvalidKey")
            case "X_BUSY":
                self._refuse(asked, 429, 429, "TooMany", {"retry-after": "7"})
            case "X_CUT":
                asked.close_connection = True
            case "X_ODD":
                self._send(asked, 200, ["no", "answer"])
            case "X_ELSEWHERE":
                self._send(asked, 307, {}, {"location": body["arguments"]["to"]})
            case "X_FAILS":
                self._send(asked, 200, {"data": {}, "error": f"no: {KEY}", "successful": False})
            case _:
                self._account(asked, body)

    def _account(self, asked: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        account = self.accounts.get(body.get("user_id", ""))
        if account is None:
            self._refuse(asked, 400, 1810, "NoConnectedAccount")
            return
        data = {"account": account, "arguments": body["arguments"], "version": body.get("version")}
        self._send(asked, 200, {"data": data, "error": None, "successful": True})

    def _refuse(
        self,
        asked: BaseHTTPRequestHandler,
        status: int,
        code: int,
        slug: str,
        headers: dict[str, str] | None = None,
    ) -> None:
        error = {"message": f"{slug} for {KEY}", "code": code, "slug": slug, "status": status}
        self._send(asked, status, {"error": {**error, "request_id": "r1"}}, headers)

    @staticmethod
    def _send(
        asked: BaseHTTPRequestHandler,
        status: int,
        value: Any,
        headers: dict[str, str] | None = None,
    ) -> None:
        raw = json.dumps(value).encode()
        asked.send_response(status)
        more = {"content-type": "application/json", "content-length": str(len(raw))}
        for name, text in (more | (headers or {})).items():
            asked.send_header(name, text)
        asked.end_headers()
        asked.wfile.write(raw)
