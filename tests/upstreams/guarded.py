"""An MCP server that wants tokens, and whoever gives them; both on loopback."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

from tests.house import until
from tests.providers.service import Answer, Seen, Service, answer, service
from tests.upstreams.bare import Bare
from tests.upstreams.misbehaving import answer as said_right
from tests.upstreams.misbehaving import result, text
from toolgate.net.client import HttpClient
from toolgate.providers.http.secret import Secrets
from toolgate.settings.outward import McpOAuth, McpServer, Secret
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.dialing import connected

# Where the server publishes what it is: where it has to, and where it can say that it does.
OWN = ("/.well-known/oauth-protected-resource", "/of-mine")
SECRET = "s3cret-of-the-client"  # noqa: S105  of nobody
NAME = "crm"


class Guarded:
    """`good` are the tokens that are taken; each that is given is a new one, and is good."""

    def __init__(self, server: Service, giver: Service) -> None:
        self.server = server
        self.giver = giver
        self.url = f"{server.url}/mcp"
        self.good: set[str] = set()
        self.given: list[dict[str, str]] = []
        # Whom the server names, and what it says that it needs.
        self.names = giver.url
        self.scope = ""
        # Whether it says on its stream that its tools have changed.
        self.streams = False
        self.refuses = False
        # What it says beside `Bearer`, and what it answers where its own document should be.
        self.challenge = ""
        self.own: Answer | None = None
        # What it wants beside that for the tool `more`.
        self.more: Callable[[], str] = lambda: "admin"
        # What is published beside what is right, or in its place.
        self.published: dict[str, Any] = {}
        # What is said instead of a token.
        self.says: Answer | None = None
        # Tokens are given once this is set.
        self.gives = asyncio.Event()
        self.gives.set()
        server.answers = self.served
        giver.answers = self.token

    def asked(self, method: str) -> list[Seen]:
        """Requests of this method, in order."""
        found = [one for one in self.server.seen if one.target == "/mcp" and one.body]
        return [one for one in found if one.json.get("method") == method]

    def served(self, seen: Seen) -> Answer:
        if seen.target.startswith(OWN):
            right = {"resource": self.url, "authorization_servers": [self.names]}
            return self.own or answer(right)
        if seen.target != "/mcp":
            return answer({}, 404)
        if seen.headers.get("authorization", "").removeprefix("Bearer ") not in self.good:
            scope = f' scope="{self.scope}"' if self.scope else self.challenge
            return answer({}, 401, WWW_Authenticate=f"Bearer{scope}")
        if seen.method == "GET":
            if not self.streams:
                return Answer(405, b"")
            changed = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
            return Answer(200, changed, "text/event-stream")
        said: dict[str, Any] = json.loads(seen.body) if seen.body else {}
        if said.get("method") == "tools/call" and said["params"]["name"] == "echo":
            told = f"{dict(seen.headers)} {SECRET}"
            return Answer(200, result(said["id"], text(told)))
        if said.get("method") == "tools/call" and said["params"]["name"] == "more":
            need = f'Bearer error="insufficient_scope", scope="{self.more()}"'
            return answer({}, 403, WWW_Authenticate=need)
        made = said_right(said)
        return Answer(202, b"") if made is None else Answer(200, made)

    def token(self, seen: Seen) -> "Answer | Awaitable[Answer]":
        if seen.target.startswith("/.well-known/oauth-authorization-server"):
            methods = ["client_secret_post"]
            there = {
                "issuer": self.giver.url,
                "authorization_endpoint": f"{self.giver.url}/authorize",
                "token_endpoint": f"{self.giver.url}/token",
                "token_endpoint_auth_methods_supported": methods,
                "code_challenge_methods_supported": ["S256"],
            }
            return answer(there | self.published)
        return self._given(seen) if seen.target == "/token" else answer({}, 404)

    async def _given(self, seen: Seen) -> Answer:
        form = {name: one for name, [one] in parse_qs(seen.body.decode()).items()}
        self.given.append(form | {"authorization": seen.headers.get("authorization", "")})
        token = f"token-{len(self.given)}-of-the-giver"
        await self.gives.wait()
        if self.says is not None:
            return self.says
        if not self.refuses:
            self.good.add(token)
        return answer({"access_token": token, "token_type": "Bearer", "expires_in": 3600})


@asynccontextmanager
async def guarded() -> AsyncGenerator[Guarded]:
    async with service() as server, service() as giver:
        yield Guarded(server, giver)


def upstream(
    far: Guarded, client: HttpClient, *hosts: str, is_named: bool = True, **oauth: Any
) -> Connected:
    """As the settings would have it; without hosts the secret may go to both."""
    bound = Secret(value_env="CRM", hosts=hosts or (far.server.place, far.giver.place))
    secrets = Secrets({NAME: bound}, {"CRM": SECRET})
    who = McpOAuth.model_validate({"client_id": "toolgate", "secret": NAME, **oauth})
    settings = McpServer(url=far.url, oauth=who, timeout=5)
    return connected(
        "far",
        settings,
        client=client,
        sandbox=Bare(),
        environ={},
        is_named=is_named,
        secret=secrets.sent_to,
    )


async def problem(it: Connected) -> str:
    """What is wrong with it, after one try."""
    await it.open(10)
    found = it.problem
    await it.close()
    return found


async def opened(far: Guarded, it: Connected) -> None:
    """Reached, and nobody else of ours is about to ask: its stream has been asked for."""
    await it.open()
    await until(
        lambda: any(one.method == "GET" and one.target == "/mcp" for one in far.server.seen)
    )
