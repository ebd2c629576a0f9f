"""Runtime: discover, call and undo. Every door leads through here, and through nothing else."""

import contextlib
import copy
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, Unpack

import msgspec

from toolgate.asked import PLAINLY, Asked, Line
from toolgate.call import Grant, Output, Turn
from toolgate.caller import Caller
from toolgate.catalog.catalog import Catalog
from toolgate.crash import crash_here
from toolgate.errors import CallNotFound, InvalidRequest, PolicyUnavailable, StoreError
from toolgate.executor.aftercare.found import Finding
from toolgate.executor.aftercare.probing import Probing
from toolgate.executor.aftercare.recovery import Recover
from toolgate.executor.aftercare.report import Report
from toolgate.executor.aftercare.settling import Settling
from toolgate.executor.aftercare.undo import Asker, Undo
from toolgate.executor.bare import barely, untold
from toolgate.executor.deliveries import Deliveries
from toolgate.executor.executor import Executor
from toolgate.executor.people.bus import Subscription
from toolgate.executor.people.people import People
from toolgate.executor.recording.claim import check_key, check_wait
from toolgate.executor.several.batch import Batch
from toolgate.executor.several.chain import Chain
from toolgate.executor.several.several import Several
from toolgate.executor.several.steps import Mode
from toolgate.executor.trace.trace import traced
from toolgate.executor.trace.watch import Watch
from toolgate.gate.decision import Decisions, Explanation, Forgetful
from toolgate.gate.gate import Gate
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Journal, Outdated
from toolgate.ledger.ledger import Ledger
from toolgate.offices import Given, Offices
from toolgate.settings.execution import Features
from toolgate.shelf import Shelf
from toolgate.sight import Inside
from toolgate.spec.effect import Effect
from toolgate.spec.function import Binding
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy
from toolgate.toolbox import Toolbox
from toolgate.upstreams.upstream import Upstream

ADDED = "python"
# So often a call is decided anew because the world changed before it was begun.
_MOST_TRIES = 5
_NO_UPSTREAMS: Mapping[str, Upstream] = MappingProxyType({})
Rest = Callable[[], object]


class Functions(Protocol):
    """Where functions go that a program adds."""

    def bind(self, binding: Binding) -> None: ...


class Runtime(Offices):
    """The house, put together. The rooms are there for operators; callers need the verbs."""

    def __init__(  # noqa: PLR0913  every room, once, by its name
        self,
        *,
        catalog: Catalog,
        tenancy: Tenancy,
        gate: Gate,
        executor: Executor,
        journal: Journal,
        functions: Functions,
        people: People,
        ledger: Ledger,
        lease: float = 15.0,
        most_calls: int = 10,
        parallel_mutations: bool = False,
        decisions: Decisions | None = None,
        watch: Watch | None = None,
        features: Features | None = None,
        secret: bytes = b"",
        shelf: Shelf | None = None,
        upstreams: Mapping[str, Upstream] = _NO_UPSTREAMS,
        **offices: Unpack[Given],
    ) -> None:
        """`secret`: what the doors sign by, the same on every node. `shelf`: where they leave word
        for other nodes. `upstreams`: the MCP servers whose resources and prompts they pass on.
        """
        super().__init__(**offices)
        self.secret = secret
        self.shelf = shelf
        self.upstreams = upstreams
        self.catalog = catalog
        self.tenancy = tenancy
        self.gate = gate
        self.journal = journal
        self.decisions: Decisions = decisions or Forgetful()
        self.approvals = people.desk
        self._bus = people.bus
        self.watch = watch or Watch()
        self.features = features or Features()
        self._do = traced(self._perform, self.watch.spans)
        if not self.features.side_effect_tracking:
            self._do = untold(self._do)
        self._executor = executor
        # Takes secrets out of what a door keeps.
        self.redactor = executor.redactor
        self._functions = functions
        self.ledger = ledger
        queue = offices.get("queue")
        finding = Finding(ledger, journal, queue, self._spec_of)
        self.find = finding.find
        probing = Probing(self._do, self._spec_of, executor.redactor)
        self._undo = Undo(
            ledger,
            journal,
            perform=self._do,
            decide=gate.decide,
            spec_of=self._spec_of,
            probing=probing,
            find=finding.effect,
        )
        self.settling = Settling(ledger, self._do, finding.effect)
        self.deliveries = Deliveries(
            self._do, self._spec_of, journal, self.watch.spans, executor.redactor
        )
        # How many calls may be asked for at once.
        self.most_calls = most_calls
        self._several = Several(
            self._do, gate.view, most=most_calls, parallel_mutations=parallel_mutations
        )
        self.recovery = Recover(
            ledger,
            journal,
            decide=gate.decide,
            resume=self._resume,
            probing=probing,
            undo=self._undo,
            lease=lease,
            always=people.always,
            queue=queue,
        )
        # What is begun here although nobody asks for it now: each is told when that has to stop.
        self.errands: list[Rest] = [self.recovery.rest]
        # What has time of its own when the calls of others are cut off, and comes to its end first.
        self.partings: list[Callable[[], Awaitable[object]]] = []

    def add(self, *functions: Callable[..., Any], **fields: Any) -> tuple[ToolSpec, ...]:
        """Register Python functions as tools; fields given here win over their decorators."""
        bindings = [Binding(function, **fields) for function in functions]
        specs = [*self.catalog.part(ADDED), *(binding.spec for binding in bindings)]
        self.catalog.check(ADDED, specs)
        for binding in bindings:
            self._functions.bind(binding)
        self.catalog.put(ADDED, specs)
        return tuple(binding.spec for binding in bindings)

    def events(self, tenant: str | None = None) -> Subscription:
        """What happens from now on, of one tenant or of all: side effects that start, complete and
        fail, and persons who are asked and decide. Other nodes' too, where they share a Redis.
        """
        return self._bus.subscribe(tenant)

    async def discover(self, caller: Caller) -> tuple[ToolSpec, ...]:
        """Exactly what the caller may call, by name."""
        listed = await self.gate.listing(caller)
        self.watch.meter.show(caller.agent, len(listed))
        return listed

    async def call(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        *,
        caller: Caller,
        turn: Turn | None = None,
        idempotency_key: str | None = None,
        wait_s: float | None = None,
        line: Line | None = None,
        on_piece: Callable[[Any], object] | None = None,
    ) -> Output:
        """Run a tool once for this caller.

        A refusal is raised (`CallRefused`): nothing ran. A tool's own failure is an Output, and so
        is a call that waits for a person. The same call in the same turn group, or with the same
        `idempotency_key`, is answered with the first result; while that is still to come it is
        waited for, `wait_s` seconds at the most. `line`: where its tool can be heard meanwhile;
        `on_piece` is told each piece of one that streams.
        """
        asked = PLAINLY
        is_plain = idempotency_key is None and wait_s is None
        if not is_plain or line is not None or on_piece is not None:
            key = "" if idempotency_key is None else check_key(idempotency_key)
            wait_s = None if wait_s is None else check_wait(wait_s)
            asked = Asked(key=key, wait_s=wait_s, line=line, on_piece=on_piece)
        if args is None:
            args = {}
        elif type(args) is not dict:
            raise InvalidRequest(
                f"Arguments are an object of names and values, not a {type(args).__name__}."
            )
        return await self._do(tool, args, caller=caller, turn=turn, asked=asked)

    async def batch(
        self, calls: Sequence[object], *, caller: Caller, turn: Turn | None = None
    ) -> Batch:
        """Run calls in order, until a critical one fails; those behind it are skipped.

        A call is a `PlannedCall` or its fields: `{"tool": …, "args": …, "critical": …}`. What would
        be raised for one call is its Output here.
        """
        return await self._several.batch(calls, caller=caller, turn=turn)

    async def chain(
        self,
        steps: Sequence[object],
        *,
        caller: Caller,
        turn: Turn | None = None,
        mode: Mode = "parallel",
        parallel_mutations: bool = False,
        undo_on_failure: bool = False,
    ) -> Chain:
        """Run steps that may use each other's results: `"$steps.0.result.path"`.

        Pure steps run at the same time where they can. The first failure ends the chain; with
        `undo_on_failure` what it did is taken back as far as it can be.
        """

        async def take_back(chain_id: str) -> Report:
            try:
                return await self.undo(caller=caller, chain=chain_id, reason="the chain failed")
            except CallNotFound:
                # It failed before it did anything.
                return Report()

        return await self._several.chain(
            steps,
            caller=caller,
            turn=turn,
            mode=mode,
            parallel_mutations=parallel_mutations,
            take_back=take_back if undo_on_failure else None,
        )

    # Not a coroutine of its own: a call that is known to be allowed does not pay for one.
    def _perform(
        self, tool: str, args: dict[str, Any], *, caller: Caller, turn: Turn | None, asked: Asked
    ) -> Coroutine[Any, Any, Output]:
        """Decide and run: calls, and what the house calls by itself, to take back and to ask."""
        crash_here("CP1")
        grant = self.gate.known(caller, tool)
        # What is claimed may turn out to be out of date: side effects, and what a person agreed to.
        if grant is None or grant.spec.effect is not Effect.PURE or grant.needs_a_person:
            return self._decided(grant, tool, args, caller, turn, asked)
        crash_here("CP2")
        return self._executor.run(grant, args, turn, asked)

    async def _decided(
        self,
        known: Grant | None,
        tool: str,
        args: dict[str, Any],
        caller: Caller,
        turn: Turn | None,
        asked: Asked,
    ) -> Output:
        if known is not None:
            crash_here("CP2")
            try:
                return await self._executor.run(known, args, turn, asked)
            except Outdated:
                asked = await self._anew(asked)
        if self.gate.reads_args:
            # What was decided on is what runs, whoever else holds the arguments.
            args = copy.deepcopy(args)
        for _ in range(_MOST_TRIES):
            with self.watch.deciding(caller, tool, is_there=self._is_there):
                grant = await self.gate.decide(caller, tool, args, turn)
            crash_here("CP2")
            try:
                return await self._executor.run(grant, args, turn, asked)
            except Outdated:
                asked = await self._anew(asked)
        # No attempt was counted, since each was decided anew; the whole of it is. Around this call
        # may be another one: to that, this is a failure like any other.
        with self.watch.deciding(caller, tool, is_there=self._is_there):
            raise PolicyUnavailable(
                f"The rules changed again and again before {tool[:64]!r} could begin. Nothing ran: "
                "try again."
            )

    async def _anew(self, asked: Asked) -> Asked:
        """Nothing was begun: the world is looked at, and the call is decided on anew."""
        await self.tenancy.freshen()
        return msgspec.structs.replace(asked, anew=True)

    def _is_there(self, tool: str) -> bool:
        return self.catalog.current.get(tool) is not None

    async def undo(
        self,
        *,
        caller: Caller,
        call_id: str | None = None,
        turn_group: str | None = None,
        chain: str | None = None,
        reason: str = "",
    ) -> Report:
        """Take back what this caller did: one call, a turn group or a chain.

        In reverse order, each effect once, as far as its compensation is allowed today. What is
        not taken back is listed with the reason; asking again goes on from there. `CallNotFound`
        where nothing of it is this caller's.
        """
        return await self._undo.named(
            caller, Asker("", reason), call_id=call_id, turn_group=turn_group, chain=chain
        )

    async def undo_for(
        self,
        tenant: str,
        *,
        who: str,
        why: str,
        call_id: str | None = None,
        turn_group: str | None = None,
        chain: str | None = None,
    ) -> Report:
        """For an operator: as `undo`, for whichever agents of the tenant did it."""
        if not (who and why.strip()):
            raise InvalidRequest(
                "Say who takes it back, and why: it stands in the audit. Nothing was taken back."
            )
        return await self._undo.named(
            Caller(tenant=tenant),
            Asker(who, why.strip()),
            call_id=call_id,
            turn_group=turn_group,
            chain=chain,
        )

    async def _resume(self, grant: Grant, entry: Entry, args: dict[str, Any]) -> Output:
        return await self._executor.resume(grant, entry, args)

    def _spec_of(self, tool: str) -> ToolSpec | None:
        return self.catalog.current.get(tool)

    async def explain(
        self,
        tool: str,
        *,
        caller: Caller,
        args: dict[str, Any] | None = None,
        turn: Turn | None = None,
    ) -> Explanation:
        """For an operator: every phase's verdict, and the smallest change that would allow it."""
        found = await self.gate.explain(caller, tool, args, turn)
        spec = self.catalog.current.get(found.tool)
        if spec is None or self._usage is None:
            return found
        # While the store is away, what the gate says is worth as much.
        with contextlib.suppress(StoreError):
            spent = await self._usage.spent(caller.tenant, spec)
            return msgspec.structs.replace(found, budgets=spent)
        return found

    def rest(self) -> None:
        """Take over nothing, run nothing that is scheduled or queued: the end has begun.

        What has been taken goes on, and calls are answered.
        """
        for rest in self.errands:
            rest()

    async def finish(self, patience: float) -> None:
        """No new calls. Those that run get so many seconds; how they ended is on record."""
        for part in self.partings:
            await part()
        await self._executor.close(patience)

    def toolbox(self, caller: Caller, turn: Turn | None = None) -> Toolbox:
        """What one agent holds during a turn."""
        run = self.call if self.features.structured_tool_output else barely(self.call)
        return Toolbox(Inside(self.gate, caller), run, caller, turn, together=self)
