"""Toolbox: what one agent holds during a turn. A thin view; every call goes through the runtime."""

from collections.abc import Coroutine
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import msgspec

from toolgate.call import Caller, Output, Turn
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.gate.decision import Verdict
from toolgate.gate.gate import Gate
from toolgate.spec.export import export
from toolgate.spec.names import from_model
from toolgate.spec.tool import ToolSpec

T = TypeVar("T")


class Run(Protocol):
    """How a call is made."""

    async def __call__(
        self, tool: str, args: dict[str, Any] | None, *, caller: Caller, turn: Turn | None
    ) -> Output: ...


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the tenant has and this agent lacks."""

    name: str
    description: str
    phase: str
    reason: str


class _Seen(NamedTuple):
    specs: tuple[ToolSpec, ...]
    unavailable: list[Unavailable]


class Toolbox:
    """One agent, one turn.

    What needs no `await` answers at once where the gate's engines are in this process. Where the
    gate has to ask a database or a server, `await box.refresh()` asks, and the answer is kept.
    """

    def __init__(self, gate: Gate, run: Run, caller: Caller, turn: Turn | None) -> None:
        self._gate = gate
        self._run = run
        self._caller = caller
        self._turn = turn
        self._seen: _Seen | None = None

    async def refresh(self) -> Self:
        """Ask the gate now, and keep what it says for what needs no `await`."""
        specs = await self._gate.listing(self._caller)
        lacking = await self._gate.unavailable(self._caller)
        self._seen = _Seen(specs, [_told(spec, verdict) for spec, verdict in lacking])
        return self

    def tools(self, format: str = "toolgate") -> Any:  # noqa: A002
        """What the agent may call: openai, anthropic, mcp, prompt or toolgate."""
        return export(self._specs(), format)

    async def call(self, tool: str, args: dict[str, Any] | None = None) -> Output:
        """Run a tool by its name, or by the name that a model was given for it."""
        try:
            await self._gate.view(self._caller, tool)
        except ToolNotFound:
            specs = await self._gate.listing(self._caller)
            tool = from_model(spec.name for spec in specs).get(tool, tool)
        return await self._run(tool, args, caller=self._caller, turn=self._turn)

    def unavailable(self) -> list[Unavailable]:
        """What the tenant has and this agent lacks, and why."""
        try:
            lacking = _now(self._gate.unavailable(self._caller))
        except _WaitsError:
            return list(self._kept().unavailable)
        return [_told(spec, verdict) for spec, verdict in lacking]

    def is_available(self, tool: str) -> bool:
        """Whether the agent may call it."""
        return self.definition(tool) is not None

    def is_tenant_available(self, tool: str) -> bool:
        """Whether the tenant has it, whatever this agent may do."""
        return _now(self._gate.tenant_has(self._caller, tool))

    def definition(self, tool: str) -> ToolSpec | None:
        """The spec of a tool that the agent may call."""
        try:
            return _now(self._gate.view(self._caller, tool))
        except ToolNotFound:
            return None
        except _WaitsError:
            return next((spec for spec in self._kept().specs if spec.name == tool), None)

    def _specs(self) -> tuple[ToolSpec, ...]:
        try:
            return _now(self._gate.listing(self._caller))
        except _WaitsError:
            return self._kept().specs

    def _kept(self) -> _Seen:
        if self._seen is None:
            raise InvalidRequest(
                "The gate has to ask a database or a server for this; call "
                "`await box.refresh()` first."
            )
        return self._seen


def _told(spec: ToolSpec, verdict: Verdict) -> Unavailable:
    return Unavailable(
        name=spec.name,
        description=spec.description,
        phase=verdict.phase,
        reason=verdict.reason,
    )


class _WaitsError(Exception):
    """The decision is not to be had without waiting."""


def _now(decision: Coroutine[Any, Any, T]) -> T:
    """Finish a decision that waits for nothing."""
    try:
        decision.send(None)
    except StopIteration as done:
        return done.value
    decision.close()
    raise _WaitsError
