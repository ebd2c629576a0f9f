"""Toolbox: what one agent holds during a turn. A thin view; every call goes through the runtime."""

from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import msgspec

from toolgate.call import Caller, Output, Turn
from toolgate.errors import InvalidRequest, ToolgateError, ToolNotFound
from toolgate.executor.several.batch import Batch
from toolgate.executor.several.chain import Chain
from toolgate.executor.several.refused import refused
from toolgate.executor.several.steps import Mode
from toolgate.gate.decision import Verdict
from toolgate.gate.gate import Gate
from toolgate.messages.read import misread, read
from toolgate.messages.reply import replies
from toolgate.messages.said import Said
from toolgate.spec.effect import Effect
from toolgate.spec.export import export
from toolgate.spec.names import from_model
from toolgate.spec.tool import ToolSpec

T = TypeVar("T")
_WAITS = "The gate has to ask a database or a server for this; call `await box.refresh()` first."


class Run(Protocol):
    """How a call is made."""

    async def __call__(
        self,
        tool: str,
        args: dict[str, Any] | None,
        *,
        caller: Caller,
        turn: Turn | None,
        idempotency_key: str | None = None,
        wait_s: float | None = None,
    ) -> Output: ...


class Together(Protocol):
    """How several calls are made at once."""

    most_calls: int

    async def batch(
        self, calls: Sequence[object], *, caller: Caller, turn: Turn | None
    ) -> Batch: ...

    async def chain(
        self,
        steps: Sequence[object],
        *,
        caller: Caller,
        turn: Turn | None,
        mode: Mode,
        parallel_mutations: bool,
        undo_on_failure: bool,
    ) -> Chain: ...


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a planner has to know of a tool before it calls it."""

    name: str
    effect: Effect
    requires_confirmation: bool
    compensation_tool: str = ""
    categories: tuple[str, ...] = ()

    @property
    def is_irreversible(self) -> bool:
        """Whether newer messages have to be looked at first."""
        return self.effect is Effect.IRREVERSIBLE

    @property
    def is_safe_to_retry(self) -> bool:
        """Whether running it twice equals running it once."""
        return self.effect.repeatable


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
    gate has to ask a database or a server, `await box.refresh()` asks. What it was told then is
    kept until the next time; a call is always decided anew.
    """

    def __init__(
        self,
        gate: Gate,
        run: Run,
        caller: Caller,
        turn: Turn | None,
        *,
        together: Together | None = None,
    ) -> None:
        self._gate = gate
        self._run = run
        self._caller = caller
        self._turn = turn
        self._many = together
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

    async def call(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        wait_s: float | None = None,
    ) -> Output:
        """Run a tool by its name, or by the name that a model was given for it.

        `idempotency_key` and `wait_s` are those of `gate.call`.
        """
        try:
            await self._gate.view(self._caller, tool)
        except ToolNotFound:
            specs = await self._gate.listing(self._caller)
            tool = from_model(spec.name for spec in specs).get(tool, tool)
        return await self._run(
            tool,
            args,
            caller=self._caller,
            turn=self._turn,
            idempotency_key=idempotency_key,
            wait_s=wait_s,
        )

    async def run(self, message: object) -> list[dict[str, Any]]:
        """Run the tool calls in a model's message, in their order, and answer in its own format.

        OpenAI's and Anthropic's messages, as objects or as plain JSON, and text that holds
        `{"tool_name": …, "tool_args": …}`. A call that is refused, or not clear, is answered with
        what to do about it. A message without calls has no answer.
        """
        said = read(message, most=self._together.most_calls)
        return replies(said, [await self._answered(call) for call in said.calls])

    async def batch(self, calls: Sequence[object]) -> Batch:
        """Run calls in order, until a critical one fails."""
        return await self._together.batch(calls, caller=self._caller, turn=self._turn)

    async def chain(
        self,
        steps: Sequence[object],
        *,
        mode: Mode = "parallel",
        parallel_mutations: bool = False,
        undo_on_failure: bool = False,
    ) -> Chain:
        """Run steps that may use each other's results."""
        return await self._together.chain(
            steps,
            caller=self._caller,
            turn=self._turn,
            mode=mode,
            parallel_mutations=parallel_mutations,
            undo_on_failure=undo_on_failure,
        )

    def metadata(self, tool: str) -> Metadata | None:
        """What a planner has to know of a tool that the agent may call."""
        spec = self.definition(tool)
        if spec is None:
            return None
        return Metadata(
            name=spec.name,
            effect=spec.effect,
            requires_confirmation=self._gate.needs_a_person(self._caller, spec),
            compensation_tool="" if spec.compensation is None else spec.compensation.tool,
            categories=tuple(dict.fromkeys((spec.category, *spec.categories)))
            if spec.category
            else spec.categories,
        )

    def unavailable(self) -> list[Unavailable]:
        """What the tenant has and this agent lacks, and why."""
        seen = self._kept()
        if seen is not None:
            return list(seen.unavailable)
        return [
            _told(spec, verdict) for spec, verdict in _now(self._gate.unavailable(self._caller))
        ]

    def is_available(self, tool: str) -> bool:
        """Whether the agent may call it."""
        return self.definition(tool) is not None

    def is_tenant_available(self, tool: str) -> bool:
        """Whether the tenant has it, whatever this agent may do."""
        return _now(self._gate.tenant_has(self._caller, tool))

    def definition(self, tool: str) -> ToolSpec | None:
        """The spec of a tool that the agent may call."""
        seen = self._kept()
        if seen is not None:
            return next((spec for spec in seen.specs if spec.name == tool), None)
        try:
            return _now(self._gate.view(self._caller, tool))
        except ToolNotFound:
            return None

    @property
    def _together(self) -> Together:
        if self._many is None:
            raise InvalidRequest("This toolbox was made for single calls; use gate.toolbox(…).")
        return self._many

    async def _answered(self, call: Said) -> Output:
        try:
            if call.problem:
                raise InvalidRequest(misread(call))
            return await self.call(call.tool, call.args)
        except ToolgateError as error:
            return refused(error)

    def _specs(self) -> tuple[ToolSpec, ...]:
        seen = self._kept()
        return _now(self._gate.listing(self._caller)) if seen is None else seen.specs

    def _kept(self) -> _Seen | None:
        """What was seen last. A question to a server is not begun that nobody waits for."""
        if self._seen is None and self._gate.asks_servers:
            raise InvalidRequest(_WAITS)
        return self._seen


def _told(spec: ToolSpec, verdict: Verdict) -> Unavailable:
    return Unavailable(
        name=spec.name,
        description=spec.description,
        phase=verdict.phase,
        reason=verdict.reason,
    )


def _now(decision: Coroutine[Any, Any, T]) -> T:
    """Finish a decision that waits for nothing."""
    try:
        decision.send(None)
    except StopIteration as done:
        return done.value
    decision.close()
    raise InvalidRequest(_WAITS)
