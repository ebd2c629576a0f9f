"""What operators find in a house beside the verbs: queue, audit, servers, usage, plugins, ground.

A house that was put together by hand may lack some of them, and says so to whoever asks for one.
"""

from collections.abc import Awaitable, Callable
from typing import TypedDict, Unpack

from toolgate.catalog.plugins import NoPlugins, Plugins
from toolgate.errors import InvalidRequest
from toolgate.executor.limits.usage import Usage
from toolgate.gate.replay import Replayed
from toolgate.ground import Ground, unknown
from toolgate.queue.queue import Queues
from toolgate.tenancy.audit import Trail
from toolgate.upstreams.review import Review


class Given(TypedDict, total=False):
    """By their names. `held`: why nothing is begun on this store; empty where it is."""

    usage: Usage | None
    servers: Review | None
    plugins: Plugins | None
    queue: Queues | None
    trail: Trail | None
    replayed: Replayed | None
    ground: Callable[[], Awaitable[Ground]]
    held: Callable[[], str]


class Offices:
    """Each of them, if it is there."""

    def __init__(self, **given: Unpack[Given]) -> None:
        # For operators, and for who changes them while the house is open.
        self.plugins: Plugins = given.get("plugins") or NoPlugins()
        # For operators who are elsewhere.
        self.ground = given.get("ground", unknown)
        self.held = given.get("held", str)
        self._usage = given.get("usage")
        self._servers = given.get("servers")
        self._queues = given.get("queue")
        self._trail = given.get("trail")
        self._replayed = given.get("replayed")

    @property
    def queue(self) -> Queues:
        """Calls that wait for a worker, and those that none could run."""
        if self._queues is None:
            raise InvalidRequest("Nothing is queued here: this house was put together without.")
        return self._queues

    @property
    def trail(self) -> Trail:
        """The audit, to be proven and handed out."""
        if self._trail is None:
            raise InvalidRequest("Nothing is audited here: this house was put together without.")
        return self._trail

    @property
    def replayed(self) -> Replayed:
        """Recorded decisions, asked again of another policy."""
        if self._replayed is None:
            raise InvalidRequest("Nothing is replayed here: this house was put together without.")
        return self._replayed

    @property
    def servers(self) -> Review:
        """The MCP servers, for operators."""
        if self._servers is None:
            raise InvalidRequest("No servers are kept here: this house was put together without.")
        return self._servers

    @property
    def usage(self) -> Usage:
        """What tenants have used of their budgets."""
        if self._usage is None:
            raise InvalidRequest("Nothing is counted here: this house was put together without.")
        return self._usage
