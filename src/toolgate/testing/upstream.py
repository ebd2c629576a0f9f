"""An MCP server in memory: it serves what a test gives it, and keeps what it was asked."""

import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from toolgate.asked import Line
from toolgate.errors import ProviderUnavailable, ToolError
from toolgate.upstreams.upstream import Json, Kind

Answer = Json | Exception | Callable[..., Json | Awaitable[Json]]


class Heard(msgspec.Struct, frozen=True):
    """One call or request, as it came."""

    method: str
    params: Json
    seconds: float
    line: Line | None = None
    meta: Mapping[str, Any] | None = None


class MemoryUpstream:
    """The port for an upstream over dictionaries.

    `tools[NAME]` answers a call of it: a result, an error to raise, or a function of the arguments
    (and of the line, where it takes two). `answers[METHOD]` does so for any other request, with its
    params. `heard` is what a test looks at. While `problem` is set, it is away.
    """

    def __init__(self, name: str = "memory", **lists: Sequence[Json]) -> None:
        """`lists` are by the values of `Kind`: `tools=[…], prompts=[…]`."""
        self.name = name
        self.problem = ""
        self.last_words: Sequence[str] = ()
        self.lists: dict[Kind, list[Json]] = {
            kind: list(lists.get(kind.value, ())) for kind in Kind
        }
        self.tools: dict[str, Answer] = {}
        self.answers: dict[str, Answer] = {}
        self.heard: list[Heard] = []
        self.server_info: Mapping[str, Any] = {"name": name, "version": "1"}
        self.is_closed = False
        self._changed: list[Callable[[Kind], object]] = []
        self._watching: defaultdict[str, list[Callable[[str], object]]] = defaultdict(list)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What there is a list of."""
        found: dict[str, Any] = {}
        for kind, listed in self.lists.items():
            if listed:
                name = "resources" if kind is Kind.TEMPLATES else kind.value
                found[name] = {"listChanged": True}
        if "resources" in found:
            found["resources"]["subscribe"] = True
        if "completion/complete" in self.answers:
            found["completions"] = {}
        return found

    async def listed(self, kind: Kind) -> Sequence[Json]:
        """What a test put into `lists`."""
        self._look()
        return tuple(self.lists[kind])

    async def call(
        self,
        tool: str,
        args: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """What `tools` says to it."""
        self._look()
        params = {"name": tool, "arguments": args}
        self.heard.append(Heard("tools/call", params, seconds, line, meta))
        if tool not in self.tools:
            raise ToolError(f"{self.name} knows no tool {tool!r}.")
        return await _answered(self.tools[tool], args, line)

    async def request(
        self, method: str, params: Json, *, seconds: float, line: Line | None = None
    ) -> Json:
        """What `answers` says to it."""
        self._look()
        self.heard.append(Heard(method, params, seconds, line))
        if method not in self.answers:
            raise ToolError(f"{self.name} does not answer {method}.")
        return await _answered(self.answers[method], params, line)

    async def watch(self, uri: str, told: Callable[[str], object]) -> Callable[[], None]:
        """Told by `touch`."""
        self._look()
        self._watching[uri].append(told)

        def leave() -> None:
            if told in self._watching[uri]:
                self._watching[uri].remove(told)

        return leave

    def on_changed(self, told: Callable[[Kind], object]) -> None:
        """Told by `change`, and by `go` and `come_back`."""
        self._changed.append(told)

    async def close(self) -> None:
        """Nothing is served any more."""
        self.is_closed = True
        self.problem = "It is closed."

    def watched(self, uri: str) -> int:
        """How many hear of a resource."""
        return len(self._watching[uri])

    def touch(self, uri: str) -> None:
        """A resource has changed."""
        for told in tuple(self._watching[uri]):
            told(uri)

    def change(self, kind: Kind, listed: Sequence[Json]) -> None:
        """One of the lists is another from now on."""
        self.lists[kind] = list(listed)
        self._tell(kind)

    def go(self, problem: str = "It does not answer.") -> None:
        """It is away."""
        self.problem = problem
        self._tell(*Kind)

    def come_back(self) -> None:
        """It answers again."""
        self.problem = ""
        self._tell(*Kind)

    def _tell(self, *kinds: Kind) -> None:
        for told in tuple(self._changed):
            for kind in kinds:
                told(kind)

    def _look(self) -> None:
        if self.problem:
            raise ProviderUnavailable(
                f"The MCP server {self.name!r} is away: {self.problem} Nothing ran."
            )


async def _answered(answer: Answer, given: Json, line: Line | None) -> Json:
    if isinstance(answer, Exception):
        raise answer
    if not callable(answer):
        return answer
    takes = len(inspect.signature(answer).parameters)
    said = answer(given, line) if takes > 1 else answer(given)
    return await said if inspect.isawaitable(said) else said
