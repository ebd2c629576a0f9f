"""Toolbox: what one agent holds during a turn. A thin view; every call goes through the runtime."""

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

import msgspec

from toolgate.call import Caller, Output, Turn
from toolgate.errors import ToolNotFound
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


class Toolbox:
    """One agent, one turn."""

    def __init__(self, gate: Gate, run: Run, caller: Caller, turn: Turn | None) -> None:
        self._gate = gate
        self._run = run
        self._caller = caller
        self._turn = turn

    def tools(self, format: str = "toolgate") -> Any:  # noqa: A002
        """What the agent may call: openai, anthropic, mcp, prompt or toolgate."""
        return export(self._specs(), format)

    async def call(self, tool: str, args: dict[str, Any] | None = None) -> Output:
        """Run a tool by its name, or by the name that a model was given for it."""
        if not self.is_available(tool):
            tool = from_model(spec.name for spec in self._specs()).get(tool, tool)
        return await self._run(tool, args, caller=self._caller, turn=self._turn)

    def unavailable(self) -> list[Unavailable]:
        """What the tenant has and this agent lacks, and why."""
        return [
            Unavailable(
                name=spec.name,
                description=spec.description,
                phase=verdict.phase,
                reason=verdict.reason,
            )
            for spec, verdict in _now(self._gate.unavailable(self._caller))
        ]

    def is_available(self, tool: str) -> bool:
        """Whether the agent may call it."""
        return self.definition(tool) is not None

    def is_tenant_available(self, tool: str) -> bool:
        """Whether the tenant has it, whatever this agent may do."""
        return _now(self._gate.tenant_has(self._caller, tool))

    def definition(self, tool: str) -> ToolSpec | None:
        """The spec of a tool that the agent may call."""
        try:
            return _now(self._gate.decide(self._caller, tool)).spec
        except ToolNotFound:
            return None

    def _specs(self) -> tuple[ToolSpec, ...]:
        return _now(self._gate.listing(self._caller))


def _now(decision: Coroutine[Any, Any, T]) -> T:
    """Finish a decision that waits for nothing: every engine of this version is in this process."""
    try:
        decision.send(None)
    except StopIteration as done:
        return done.value
    decision.close()
    raise RuntimeError("this decision waits for another process; use `await gate.discover(…)`")
