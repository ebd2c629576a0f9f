"""What an agent can know of its tools: from the gate in this process, or as it was told last."""

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from toolgate.caller import Caller
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.gate.decision import Verdict
from toolgate.gate.gate import Gate
from toolgate.spec.names import from_model
from toolgate.spec.tool import ToolSpec

T = TypeVar("T")
WAITS = (
    "This has to be asked of a database or a server; call `await box.refresh()` first. It keeps "
    "what it is told for what needs no `await`."
)


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the tenant has and this agent lacks."""

    name: str
    description: str
    phase: str
    reason: str


class View(Protocol):
    """What can be told without waiting; `InvalidRequest` where that is not so."""

    def listing(self) -> tuple[ToolSpec, ...]:
        """What the agent may call, by name."""
        ...

    def get(self, tool: str) -> ToolSpec | None:
        """A tool that the agent may call."""
        ...

    def of_tenant(self, tool: str) -> ToolSpec | None:
        """A tool that the tenant has, whatever this agent may do."""
        ...

    def unavailable(self) -> list[Unavailable]:
        """What the tenant has and this agent lacks, and why."""
        ...

    def needs_a_person(self, spec: ToolSpec) -> bool:
        """Whether each call of it waits for somebody."""
        ...


class Sight(Protocol):
    """Where one agent's toolbox looks."""

    def at_once(self) -> View:
        """What is known without asking."""
        ...

    async def look(self) -> View:
        """Ask now; what was told stays as it is."""
        ...

    async def meant(self, tool: str) -> str:
        """The tool that a name stands for: its own name, or the one that a model was given."""
        ...


class Lacking(NamedTuple):
    """A tool that the agent lacks, and what is told of it."""

    spec: ToolSpec
    told: Unavailable


class Seen:
    """What was told, as it was then."""

    def __init__(
        self,
        specs: Iterable[ToolSpec],
        lacking: Iterable[Lacking],
        people: Iterable[str],
    ) -> None:
        """`people`: the tools of which each call waits for somebody."""
        self._specs: Mapping[str, ToolSpec] = {spec.name: spec for spec in specs}
        self._lacking: Mapping[str, Lacking] = {one.spec.name: one for one in lacking}
        self._people = frozenset(people)

    def listing(self) -> tuple[ToolSpec, ...]:
        """What the agent might call."""
        return tuple(self._specs.values())

    def get(self, tool: str) -> ToolSpec | None:
        """A tool that the agent might call."""
        return self._specs.get(tool)

    def of_tenant(self, tool: str) -> ToolSpec | None:
        """A tool that the tenant had."""
        lacking = self._lacking.get(tool)
        return self._specs.get(tool) if lacking is None else lacking.spec

    def unavailable(self) -> list[Unavailable]:
        """What the agent lacked."""
        return [one.told for one in self._lacking.values()]

    def needs_a_person(self, spec: ToolSpec) -> bool:
        """Whether each call of it waited for somebody."""
        return spec.name in self._people


class Inside:
    """The gate in this process, for one caller. It answers at once where its engines are here."""

    def __init__(self, gate: Gate, caller: Caller) -> None:
        self._gate = gate
        self._caller = caller

    def at_once(self) -> View:
        """The gate itself."""
        return self

    async def look(self) -> Seen:
        """Ask the gate's engines now, wherever they are."""
        specs = await self._gate.listing(self._caller)
        lacking = [Lacking(spec, _told(spec, verdict)) for spec, verdict in await self._lacks()]
        people = [spec.name for spec in specs if self.needs_a_person(spec)]
        return Seen(specs, lacking, people)

    async def meant(self, tool: str) -> str:
        """Its own name first: a name of ours stands for no other."""
        try:
            await self._gate.view(self._caller, tool)
        except ToolNotFound:
            specs = await self._gate.listing(self._caller)
            return from_model(spec.name for spec in specs).get(tool, tool)
        return tool

    def listing(self) -> tuple[ToolSpec, ...]:
        """What the agent may call."""
        return self._now(self._gate.listing(self._caller))

    def get(self, tool: str) -> ToolSpec | None:
        """A tool that the agent may call."""
        try:
            return self._now(self._gate.view(self._caller, tool))
        except ToolNotFound:
            return None

    def of_tenant(self, tool: str) -> ToolSpec | None:
        """A tool that the tenant has; for this nobody has to be asked."""
        return _finished(self._gate.of_tenant(self._caller, tool))

    def unavailable(self) -> list[Unavailable]:
        """What the agent lacks."""
        return [_told(spec, verdict) for spec, verdict in self._now(self._lacks())]

    def needs_a_person(self, spec: ToolSpec) -> bool:
        """Whether each call of it waits for somebody."""
        return self._gate.needs_a_person(self._caller, spec)

    def _lacks(self) -> Coroutine[Any, Any, list[tuple[ToolSpec, Verdict]]]:
        return self._gate.unavailable(self._caller)

    def _now(self, decision: Coroutine[Any, Any, T]) -> T:
        """Finish a decision. A question to a server is not begun that nobody waits for."""
        if self._gate.asks_servers:
            decision.close()
            raise InvalidRequest(WAITS)
        return _finished(decision)


def _finished(decision: Coroutine[Any, Any, T]) -> T:
    try:
        decision.send(None)
    except StopIteration as done:
        return done.value
    decision.close()
    raise InvalidRequest(WAITS)


def _told(spec: ToolSpec, verdict: Verdict) -> Unavailable:
    return Unavailable(
        name=spec.name,
        description=spec.description,
        phase=verdict.phase,
        reason=verdict.reason,
    )
