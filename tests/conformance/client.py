"""The client that the official suite drives: our upstream, with a person who agrees to all."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from toolgate.asked import Question
from toolgate.errors import ToolgateError
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.settings.outward import McpOAuth, McpServer
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.consent import Consented
from toolgate.upstreams.credentials import Credentials
from toolgate.upstreams.dialing import AddressDial
from toolgate.upstreams.exchange import Registered
from toolgate.upstreams.oauth import Grant, OAuth
from toolgate.upstreams.upstream import Kind

SECONDS = 20.0
REDIRECT = "http://localhost:3000/callback"
# The one where nobody is there to give consent.
ALONE = "auth/client-credentials-basic"
DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Agreeing:
    """Whoever is asked says yes, and leaves every field as it is."""

    capabilities: Mapping[str, Any] = {"elicitation": {}}
    wants_progress = True
    log_level = ""

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Nobody looks."""

    def log(self, level: str, message: Any) -> None:
        """Nobody looks."""

    def queued(self, call_id: str) -> None:
        """Nobody looks."""

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        return {name: {"action": "accept", "content": {}} for name in questions}


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Something that fits, for every argument that is wanted."""
    samples: dict[str, Any] = {
        "integer": 5,
        "number": 5,
        "boolean": True,
        "string": "test",
        "array": [],
    }
    fields: dict[str, Any] = schema.get("properties") or {}
    found = {name: samples.get(field.get("type")) for name, field in fields.items()}
    return {name: one for name, one in found.items() if one is not None}


@asynccontextmanager
async def listening(path: Path) -> AsyncGenerator[None]:
    """Runs a client for each that `shim` asks for, and tells it what went wrong."""
    running: set[asyncio.Task[Any]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        asked = orjson.loads(await reader.readline())
        try:
            context = orjson.loads(asked["context"] or b"{}")
            writer.write((await main(asked["url"], asked["scenario"], context)).encode())
        except ToolgateError as error:
            writer.write(error.message.encode())
        finally:
            running.discard(task)
            writer.close()

    server = await asyncio.start_unix_server(one, str(path))
    try:
        yield
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def main(url: str, scenario: str, context: dict[str, Any]) -> str:
    """Use the server at this address; why it could not be used, where that is so."""
    # The suite's servers for tokens are on this machine too.
    client = HttpClient(Guard(("localhost", "127.0.0.0/8")))
    settings = McpServer(url=url, elicitation=True)
    oauth = OAuth(grant(url, client, scenario, context))
    dial = AddressDial("suite", settings, client, {}, oauth)
    upstream = Connected("suite", dial, asks=settings.asks, timeout=SECONDS)
    try:
        await upstream.open(SECONDS)
        if not upstream.problem:
            await used(upstream, context)
        return upstream.problem
    finally:
        await upstream.close()
        await client.close()


def grant(url: str, client: HttpClient, scenario: str, context: dict[str, Any]) -> Grant:
    """As an operator would have set it up: for who we are, or with the consent of a person."""
    given, secret = context.get("client_id", ""), context.get("client_secret", "")
    if scenario == ALONE:
        settings = McpOAuth(client_id=given, secret="suite")  # noqa: S106  a name
        return Credentials(url, client, settings, lambda _name, _urls: secret)

    async def consent(where: str) -> str:
        answer = await client.get(where, headers={}, most=65_536)
        return answer.headers.get("location", "")

    known = Registered(id=given, secret=secret) if given else None
    return Consented(url, client, consent, redirect=REDIRECT, document=DOCUMENT, registered=known)


async def used(upstream: Connected, context: dict[str, Any]) -> None:
    """Everything that a server offers, once; or what the suite asks for."""
    planned: list[dict[str, Any]] | None = context.get("toolCalls")
    tools = {one["name"]: one for one in await upstream.listed(Kind.TOOLS)}
    if planned is None:
        schemas: dict[str, Any] = {
            name: one.get("inputSchema") or {} for name, one in tools.items()
        }
        planned = [{"name": name, "arguments": arguments(one)} for name, one in schemas.items()]
        for one in planned:
            if one["name"] == "json_schema_echo":
                one["arguments"] = {"schema": schemas["json_schema_2020_12_tool"]}
    for one in planned:
        await tried(upstream.call(one["name"], one["arguments"], seconds=SECONDS, line=Agreeing()))
    for resource in await upstream.listed(Kind.RESOURCES):
        await tried(upstream.request("resources/read", {"uri": resource["uri"]}, seconds=SECONDS))
    for prompt in await upstream.listed(Kind.PROMPTS):
        await tried(upstream.request("prompts/get", {"name": prompt["name"]}, seconds=SECONDS))


async def tried(work: Awaitable[Any]) -> None:
    with suppress(ToolgateError):
        await work
