"""The suite that every provider keeps, over those of ours that reach something else."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.providers.http_tools import VALUE, secrets
from tests.providers.service import Answer, Seen, Service, answer, service
from tests.upstreams.bare import address
from toolgate.call import Failure, Output
from toolgate.executor.provider import Provider
from toolgate.executor.queued import Answers
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.providers.http.provider import HttpProvider
from toolgate.providers.mcp import McpProvider
from toolgate.providers.queue import QueueProvider
from toolgate.queue.message import Request
from toolgate.settings.outward import HttpTools, McpServer
from toolgate.testing.provider import ProviderSuite, Sample
from toolgate.upstreams.member import Member

pytestmark = pytest.mark.req("P7")
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def never() -> Any:
    """Until whoever waits has gone."""
    await asyncio.Event().wait()


class TestHttp(ProviderSuite):
    kind = "http"
    secret = VALUE
    there: Service

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        async with service() as self.there:
            self.there.answers = self._answer
            client = HttpClient(Guard(["127.0.0.0/8"]))
            settings = HttpTools(secrets=secrets("127.0.0.1"))
            found = HttpProvider(settings, client, environ={"KEY": VALUE})
            yield found
            await found.close()
            await client.close()

    def _answer(self, seen: Seen) -> Any:
        url = urlsplit(seen.target)
        if url.path == "/slow":
            return never()
        if url.path == "/fail":
            # It repeats what it was sent.
            return answer({"error": seen.headers["authorization"]}, status=500)
        return answer({"said": parse_qs(url.query)["text"][0]})

    def says(self, text: str) -> Sample:
        return self._sample("/say", text)

    def wrong(self) -> Sequence[Sample]:
        return [Sample(config={}), Sample(config={"url": "gopher://there", "method": "GET"})]

    def fails(self) -> Sample | None:
        return self._sample("/fail", "x")

    def slow(self) -> Sample | None:
        return self._sample("/slow", "x")

    def absent(self) -> Sample | None:
        sample = self._sample("/say", "x")
        # Nobody listens there.
        return Sample(
            config={**sample.config, "url": "http://127.0.0.1:1"},
            args=sample.args,
            input_schema=TEXT,
        )

    def unfit(self) -> Sample | None:
        return self._sample("/say/{part}", "..", place="path", name="part")

    def _sample(self, path: str, text: str, place: str = "query", name: str = "text") -> Sample:
        config = {
            "url": self.there.url,
            "path": path,
            "method": "GET",
            "parameters": [{"name": name, "in": place, "argument": "text"}],
            "auth": {"kind": "bearer", "secret": "key"},
        }
        return Sample(config=config, args={"text": text}, input_schema=TEXT)


class TestMcp(ProviderSuite):
    kind = "mcp"
    secret = VALUE

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        client = HttpClient(Guard(["127.0.0.0/8"]))
        async with service() as there:
            there.answers = self._answer
            named = {"Authorization": f"Bearer {VALUE}"}
            upstream = address(there.port, client, headers=named)
            await upstream.open()
            gone = address(1, client)
            members: dict[str, Member] = {}
            for name, one in (("there", upstream), ("gone", gone)):
                members[name] = Member(name, McpServer(url="https://there.example"), one)
                members[name].is_checked = True
            yield McpProvider(members)
            await upstream.close()
            await gone.close()
        await client.close()

    def _answer(self, seen: Seen) -> Any:
        said: dict[str, Any] = seen.json if seen.body else {}
        if "id" not in said:
            return Answer(202, b"")
        if said["method"] == "initialize":
            told: Any = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "there", "version": "1"},
            }
        elif said["method"] != "tools/call":
            # It knows the older revision alone.
            unknown = {"code": -32601, "message": "no such method"}
            return answer({"jsonrpc": "2.0", "id": said["id"], "error": unknown})
        else:
            params = said["params"]
            if params["name"] == "slow":
                return never()
            is_error = params["name"] == "fail"
            # It repeats what it was sent.
            text = seen.headers["authorization"] if is_error else params["arguments"]["text"]
            told = {"content": [{"type": "text", "text": text}], "isError": is_error}
        return answer({"jsonrpc": "2.0", "id": said["id"], "result": told})

    def says(self, text: str) -> Sample:
        return self._sample("say", text)

    def wrong(self) -> Sequence[Sample]:
        return [Sample(config={}), self._sample("say", "x", server="nowhere")]

    def fails(self) -> Sample | None:
        return self._sample("fail", "x")

    def slow(self) -> Sample | None:
        return self._sample("slow", "x")

    def absent(self) -> Sample | None:
        return self._sample("say", "x", server="gone")

    @staticmethod
    def _sample(tool: str, text: str, server: str = "there") -> Sample:
        config = {"server": server, "tool": tool}
        return Sample(config=config, args={"text": text}, input_schema=TEXT)


class FarSide:
    """Another system behind the port to brokers; a real one is in `tests/queue`."""

    producers = {"crm": object()}  # noqa: RUF012  as a settings file has them

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.is_there = True

    async def listens(self) -> bool:
        return self.is_there

    async def hand_over(self, topic: str, request: Request, to: str) -> bool:
        said = request.args["text"]
        loop = asyncio.get_running_loop()
        if topic == "fail":
            failed = Output(
                status="error", error=Failure(code="execution_failed", message="It broke.")
            )
            loop.call_soon(self._answers.give, request.id, failed)
        elif topic == "say":
            done = Output(status="success", data={"said": said})
            loop.call_soon(self._answers.give, request.id, done)
        return True

    def forget(self, call_id: str, *, answered: bool) -> None:
        """Nothing is kept."""


class TestQueue(ProviderSuite):
    kind = "queue"

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        answers = Answers()
        self.far = FarSide(answers)
        yield QueueProvider(answers, self.far)

    def says(self, text: str) -> Sample:
        return self._sample("say", text)

    def wrong(self) -> Sequence[Sample]:
        nobody = Sample(config={"topic": "say", "producer": "nobody"})
        return [Sample(config={}), Sample(config={"topic": 3}), nobody]

    def fails(self) -> Sample | None:
        return self._sample("fail", "x")

    def slow(self) -> Sample | None:
        return self._sample("nobody reads it", "x")

    def absent(self) -> Sample | None:
        self.far.is_there = False
        return self._sample("say", "x")

    @staticmethod
    def _sample(topic: str, text: str) -> Sample:
        config = {"topic": topic, "producer": "crm"}
        return Sample(config=config, args={"text": text}, input_schema=TEXT)
