"""Agents of the tests on loopback: those that speak A2A, and those that tasks are handed to."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

KEY = "a-key-of-the-tests"


class AgentsApi:
    """`asked` are the requests that subordinates were sent, with their headers."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.looks: dict[str, int] = {}

    async def card(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        url = f"{self.url}/{name}/rpc"
        if name == "nothing":
            return web.Response(text="<html>hello</html>", content_type="text/html")
        if name == "trap":
            url = "http://169.254.169.254/latest/meta-data"
        if name in {"old", "oldest"}:
            if (name == "oldest") == request.path.endswith("agent-card.json"):
                raise web.HTTPNotFound
            return web.json_response({"name": name, "url": url, "protocolVersion": "0.3.0"})
        binding = "HTTP+JSON" if name == "rest" else "JSONRPC"
        found = [{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}]
        return web.json_response({"name": name, "supportedInterfaces": found})

    async def rpc(self, request: web.Request) -> web.Response:
        name, body = request.match_info["name"], await request.json()
        if name == "odd":
            return web.json_response({"hello": "world"})
        if name == "refusing":
            error = {"code": -32602, "message": "no such words here"}
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "error": error})
        params = body["params"]
        if body["method"] in {"GetTask", "tasks/get"}:
            result = self._task(name, params["id"])
        else:
            result = self._said(name, params["message"])
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})

    def _said(self, name: str, message: dict[str, Any]) -> dict[str, Any]:
        text = f"You said: {message['parts'][0]['text']}"
        if name in {"old", "oldest"}:
            assert message["role"] == "user"
            part = {"kind": "text", "text": text}
            return {"kind": "message", "role": "agent", "messageId": "m", "parts": [part]}
        if name == "slow":
            self.looks[message["messageId"]] = 0
            return {"task": self._task(name, message["messageId"])}
        if name == "asking":
            said = {"parts": [{"text": "Which city?"}], "role": "ROLE_AGENT", "messageId": "m"}
            state = "TASK_STATE_COMPLETED" if "taskId" in message else "TASK_STATE_INPUT_REQUIRED"
            status = {"state": state, "message": said}
            return {
                "task": {"id": message.get("taskId", "t-1"), "contextId": "c", "status": status}
            }
        parts = [{"text": text}, {"data": {"n": 1}}, {"url": "https://x/y", "filename": "y.png"}]
        return {
            "message": {"messageId": "m", "role": "ROLE_AGENT", "contextId": "c", "parts": parts}
        }

    def _task(self, _name: str, task: str) -> dict[str, Any]:
        self.looks[task] += 1
        done = self.looks[task] > 2
        state = "TASK_STATE_COMPLETED" if done else "TASK_STATE_WORKING"
        found: dict[str, Any] = {"id": task, "contextId": "c", "status": {"state": state}}
        if done:
            found["artifacts"] = [{"artifactId": "a", "parts": [{"text": "At last."}]}]
        return found

    async def task(self, request: web.Request) -> web.Response:
        """What a subordinate does."""
        name, body = request.match_info["name"], await request.json()
        self.asked.append((dict(request.headers), body))
        if name == "keyed" and request.headers.get("Authorization") != f"Bearer {KEY}":
            raise web.HTTPUnauthorized
        if name == "broken":
            raise web.HTTPInternalServerError
        if name == "busy":
            raise web.HTTPServiceUnavailable
        if name == "plain":
            return web.Response(text=f"Done: {body['message']}")
        return web.json_response({"reply": f"Found: {body['message']}", "sources": ["memory"]})


@asynccontextmanager
async def serving() -> AsyncGenerator[AgentsApi]:
    """As long as they are needed."""
    api = AgentsApi()
    app = web.Application()
    app.router.add_get("/{name}/.well-known/agent-card.json", api.card)
    app.router.add_get("/{name}/.well-known/agent.json", api.card)
    app.router.add_post("/{name}/rpc", api.rpc)
    app.router.add_post("/subordinates/{name}", api.task)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api.url = f"http://{host}:{port}"
    try:
        yield api
    finally:
        await runner.cleanup()
