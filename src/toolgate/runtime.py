"""Runtime: discover and call. Every door leads through here, and through nothing else."""

import copy
from collections.abc import Callable
from typing import Any, Protocol

from toolgate.call import PLAINLY, Asked, Caller, Output, Turn
from toolgate.catalog.catalog import Catalog
from toolgate.crash import crash_here
from toolgate.errors import InvalidRequest
from toolgate.executor.claim import check_key
from toolgate.executor.executor import Executor
from toolgate.gate.decision import Decisions, Explanation, Forgetful
from toolgate.gate.gate import Gate
from toolgate.ledger.journal import Journal
from toolgate.spec.function import Binding
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy
from toolgate.toolbox import Toolbox

ADDED = "python"


class Functions(Protocol):
    """Where functions go that a program adds."""

    def bind(self, binding: Binding) -> None: ...


class Runtime:
    """The house, put together. The rooms are there for operators; callers need the verbs."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        tenancy: Tenancy,
        gate: Gate,
        executor: Executor,
        journal: Journal,
        functions: Functions,
        decisions: Decisions | None = None,
    ) -> None:
        self.catalog = catalog
        self.tenancy = tenancy
        self.gate = gate
        self.journal = journal
        self.decisions: Decisions = decisions or Forgetful()
        self._executor = executor
        self._functions = functions

    def add(self, *functions: Callable[..., Any], **fields: Any) -> tuple[ToolSpec, ...]:
        """Register Python functions as tools; fields given here win over their decorators."""
        bindings = [Binding(function, **fields) for function in functions]
        specs = [*self.catalog.part(ADDED), *(binding.spec for binding in bindings)]
        self.catalog.check(ADDED, specs)
        for binding in bindings:
            self._functions.bind(binding)
        self.catalog.put(ADDED, specs)
        return tuple(binding.spec for binding in bindings)

    async def discover(self, caller: Caller) -> tuple[ToolSpec, ...]:
        """Exactly what the caller may call, by name."""
        return await self.gate.listing(caller)

    async def call(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        *,
        caller: Caller,
        turn: Turn | None = None,
        idempotency_key: str | None = None,
        wait_s: float | None = None,
    ) -> Output:
        """Run a tool once for this caller.

        A refusal is raised (`CallRefused`): nothing ran. A tool's own failure is an Output, and so
        is a call that waits for a person. The same call in the same turn group, or with the same
        `idempotency_key`, is answered with the first result; while that is still to come it is
        waited for, `wait_s` seconds at the most.
        """
        asked = PLAINLY
        if idempotency_key is not None or wait_s is not None:
            key = "" if idempotency_key is None else check_key(idempotency_key)
            asked = Asked(key=key, wait_s=wait_s)
        if args is None:
            args = {}
        elif type(args) is not dict:
            raise InvalidRequest(
                f"Arguments are an object of names and values, not a {type(args).__name__}."
            )
        return await self._perform(tool, args, caller=caller, turn=turn, asked=asked)

    async def _perform(
        self, tool: str, args: dict[str, Any], *, caller: Caller, turn: Turn | None, asked: Asked
    ) -> Output:
        """Decide and run: calls, and what the house calls by itself, to take back and to ask."""
        grant = self.gate.known(caller, tool)
        if grant is None:
            if self.gate.reads_args:
                # What was decided on is what runs, whoever else holds the arguments.
                args = copy.deepcopy(args)
            grant = await self.gate.decide(caller, tool, args, turn)
        crash_here("CP2")
        return await self._executor.run(grant, args, turn, asked)

    async def explain(
        self,
        tool: str,
        *,
        caller: Caller,
        args: dict[str, Any] | None = None,
        turn: Turn | None = None,
    ) -> Explanation:
        """For an operator: every phase's verdict, and the smallest change that would allow it."""
        return await self.gate.explain(caller, tool, args, turn)

    def toolbox(self, caller: Caller, turn: Turn | None = None) -> Toolbox:
        """What one agent holds during a turn."""
        return Toolbox(self.gate, self.call, caller, turn)
