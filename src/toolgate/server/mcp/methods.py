"""The methods of MCP: one table, and which of them a client's revision has."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolgate.runtime import Runtime
from toolgate.server.mcp import revision
from toolgate.server.mcp.answers import stamped
from toolgate.server.mcp.awaited import Awaited
from toolgate.server.mcp.completion import Completion
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.listing import TTL_MS, Listing
from toolgate.server.mcp.orphans import Orphans
from toolgate.server.mcp.others import Others
from toolgate.server.mcp.post import Post
from toolgate.server.mcp.prompts import Prompts
from toolgate.server.mcp.resources import Resources
from toolgate.server.mcp.rpc import METHOD_NOT_FOUND, Fault
from toolgate.server.mcp.seal import Seal
from toolgate.server.mcp.tasks import AFTER, DECLARED, METHODS, Tasks, takes_tasks
from toolgate.server.mcp.tools import Calls

Method = Callable[[Exchange], Awaitable[dict[str, Any]]]
_HOUR_MS = 3_600_000
TOOLS = frozenset({"tools/list", "tools/call"}) | METHODS


class Methods:
    """Answers requests that stand for themselves. Lists of tools are answered as bytes elsewhere.

    `expose_tools`: without it a client can find out what there is, and nothing runs.
    """

    def __init__(
        self,
        gate: Runtime,
        listing: Listing,
        seal: Seal,
        others: Others,
        post: Post,
        *,
        expose_tools: bool = True,
        task_after: float = AFTER,
    ) -> None:
        self._exposes = expose_tools
        self._others = others
        self.calls = Calls(listing, seal)
        self.tasks = Tasks(
            self.calls,
            post,
            Orphans(gate, self.calls),
            Awaited(gate, self.calls),
            after=task_after,
        )
        self.resources = Resources(self.calls, others, runs=expose_tools)
        prompts = Prompts(self.calls, others)
        completion = Completion(self.resources, prompts)
        self._table: Mapping[str, Method] = {
            "tools/call": self._called,
            "tasks/get": _modern(self.tasks.get),
            "tasks/update": _modern(self.tasks.update),
            "tasks/cancel": _modern(self.tasks.cancel),
            "server/discover": self._discovered,
            "resources/list": _cacheable(self.resources.listed),
            "resources/templates/list": _cacheable(self.resources.templates),
            "resources/read": _cacheable(self.resources.read),
            "prompts/list": _cacheable(prompts.listed),
            "prompts/get": _whole(prompts.get),
            "completion/complete": _whole(completion.complete),
        }

    @property
    def capabilities(self) -> dict[str, Any]:
        """What a client can expect here."""
        tools: dict[str, Any] = {"tools": {"listChanged": True}} if self._exposes else {}
        return {
            **tools,
            "resources": {"listChanged": True, "subscribe": True},
            # Without another server there are none, and never will be.
            "prompts": {"listChanged": True} if self._others.are_there else {},
            "completions": {},
            "logging": {},
        }

    def exposes(self, method: str) -> bool:
        """Whether this is asked of a server that has it."""
        return self._exposes or method not in TOOLS

    async def answer(self, exchange: Exchange) -> dict[str, Any]:
        """The result, or a `Fault`."""
        method = self._table.get(exchange.method)
        if method is None or not self.exposes(exchange.method):
            raise unknown(exchange.method)
        return await method(exchange)

    # Not a coroutine of its own: who takes no tasks does not pay for them.
    def _called(self, exchange: Exchange) -> Awaitable[dict[str, Any]]:
        peer = exchange.peer
        if "extensions" in peer.capabilities and peer.is_modern and takes_tasks(peer.capabilities):
            return self.tasks.call(exchange)
        return self.calls.call(exchange)

    async def _discovered(self, exchange: Exchange) -> dict[str, Any]:
        if not exchange.peer.is_modern:
            raise unknown(exchange.method)
        extensions = {"extensions": dict(DECLARED)} if self._exposes else {}
        told: dict[str, Any] = {
            "supportedVersions": list(revision.SUPPORTED),
            "capabilities": self.capabilities | extensions,
            "instructions": revision.INSTRUCTIONS,
            # It is the same for everybody, until this server is another one.
            "ttlMs": _HOUR_MS,
            "cacheScope": "public",
        }
        return stamped(told, modern=True)


def unknown(method: str) -> Fault:
    """There is no such method, or not on this revision."""
    return Fault(METHOD_NOT_FOUND, f"There is no method {method[:80]!r} here.")


def _modern(method: Method) -> Method:
    """Only on the newer revision."""

    def answered(exchange: Exchange) -> Awaitable[dict[str, Any]]:
        if not exchange.peer.is_modern:
            raise unknown(exchange.method)
        return method(exchange)

    return answered


def _cacheable(method: Method) -> Method:
    """What a client may keep, which is nothing: what can be had may be another in a moment."""

    async def answered(exchange: Exchange) -> dict[str, Any]:
        result = await method(exchange)
        if exchange.peer.is_modern and "resultType" not in result:
            result |= {"ttlMs": TTL_MS, "cacheScope": "private"}
        return _told(exchange, result)

    return answered


def _whole(method: Method) -> Method:
    async def answered(exchange: Exchange) -> dict[str, Any]:
        return _told(exchange, await method(exchange))

    return answered


def _told(exchange: Exchange, result: dict[str, Any]) -> dict[str, Any]:
    """Stamped, but for a question to the client: that is no result yet."""
    if "resultType" in result:
        return result
    return stamped(result, result.pop("_meta", None), modern=exchange.peer.is_modern)
