"""Toolbox: what one agent holds during a turn. A thin view; every call goes through the runtime."""

from collections.abc import Sequence
from typing import Any, Protocol, Self

import msgspec

from toolgate.call import Output, Turn
from toolgate.caller import Caller
from toolgate.errors import InvalidRequest, ToolgateError
from toolgate.executor.several.batch import Batch
from toolgate.executor.several.chain import Chain
from toolgate.executor.several.refused import refused
from toolgate.executor.several.steps import Mode
from toolgate.messages.read import misread, read
from toolgate.messages.reply import replies
from toolgate.messages.said import Said
from toolgate.sight import Sight, Unavailable, View
from toolgate.spec.effect import Effect
from toolgate.spec.export import export
from toolgate.spec.tool import ToolSpec
from toolgate.tools.web.invisible import clean

_RULES = "behaviour_rules"


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


class Toolbox:
    """One agent, one turn.

    What needs no `await` answers at once where the gate's engines are in this process. Where a
    database or a server has to be asked, `await box.refresh()` asks. What it was told then is
    kept until the next time; a call is always decided anew.
    """

    def __init__(
        self,
        sight: Sight,
        run: Run,
        caller: Caller,
        turn: Turn | None,
        *,
        together: Together | None = None,
    ) -> None:
        self._sight = sight
        self._run = run
        self._caller = caller
        self._turn = turn
        self._many = together
        self._seen: View | None = None

    async def refresh(self) -> Self:
        """Ask now, and keep what is told for what needs no `await`."""
        self._seen = await self._sight.look()
        return self

    def tools(self, format: str = "toolgate") -> Any:  # noqa: A002
        """What the agent may call: openai, responses, anthropic, mcp, prompt or toolgate."""
        return export(self._view.listing(), format)

    async def prompt(self) -> str:
        """What belongs in a system prompt: the tools, and the rules that the agent keeps to.

        The rules are those of `behaviour_adjustment`; an agent that may not read them has none.
        """
        seen = await self._sight.look()
        tools = export(seen.listing(), "prompt")
        if seen.get(_RULES) is None:
            return tools
        given: Any = await self._run(_RULES, {}, caller=self._caller, turn=None)
        told: Any = given.data if isinstance(given, Output) else given
        if not told or not told["rules"]:
            return tools
        # Each on a line of its own, as it is seen: no rule looks like another part of the prompt.
        rules = [" ".join(clean(str(rule["text"])).split()) for rule in told["rules"]]
        return "\n".join([tools, "", "Rules that you keep to:", *(f"- {rule}" for rule in rules)])

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
        tool = await self._sight.meant(tool)
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
        spec = self._view.get(tool)
        if spec is None:
            return None
        return Metadata(
            name=spec.name,
            effect=spec.effect,
            requires_confirmation=self._view.needs_a_person(spec),
            compensation_tool="" if spec.compensation is None else spec.compensation.tool,
            categories=tuple(dict.fromkeys((spec.category, *spec.categories)))
            if spec.category
            else spec.categories,
        )

    def is_available(self, tool: str) -> bool:
        """Whether the agent may call it."""
        return self._view.get(tool) is not None

    def is_tenant_available(self, tool: str) -> bool:
        """Whether the tenant has it, whatever this agent may do."""
        return self._view.of_tenant(tool) is not None

    def unavailable(self) -> list[Unavailable]:
        """What the tenant has and this agent lacks, and why."""
        return self._view.unavailable()

    def definition(self, tool: str) -> ToolSpec | None:
        """The spec of a tool that the tenant has, also where this agent lacks it: for an agent that
        says what it could do. `is_available` says whether it can.
        """
        return self._view.of_tenant(tool)

    @property
    def _view(self) -> View:
        return self._sight.at_once() if self._seen is None else self._seen

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
