"""The four phases in their order, over one tool or over all of them: the same questions, once."""

import hashlib
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from toolgate.call import Action, Caller, Turn
from toolgate.catalog.snapshot import Snapshot
from toolgate.errors import PolicyUnavailable, RelationsUnavailable
from toolgate.gate import capsule, document, personas, registry, relations
from toolgate.gate.decision import Verdict
from toolgate.gate.groups import groups_of
from toolgate.gate.layers import Cascade
from toolgate.gate.policy import ARGS, HISTORY, PER_CALL, PHASE, TIME, History, Policy
from toolgate.gate.relations import Relations
from toolgate.gate.shared import NoShared, Shared, permission_key, through
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.world import World

_LAYERS = Verdict(phase=PHASE, allowed=True, rule="layers", reason="every layer leaves it")
_PERSONA = Verdict(
    phase=PHASE, allowed=True, rule="persona", reason="the persona is not kept from it"
)
_REGO = Verdict(phase=PHASE, allowed=True, rule="rego", reason="the policy allows it")
_OBSERVED = "the policy refuses it"


class Moment(NamedTuple):
    """What a decision is made on."""

    snapshot: Snapshot
    world: World
    cascade: Cascade


class Sifted(NamedTuple):
    """Of a list of tools, those that are refused, by name; and those that only would be."""

    refused: dict[str, Verdict]
    observed: dict[str, Verdict]


class Engines(NamedTuple):
    """What answers the last two phases. Without relations that phase lets everything pass."""

    policy: Policy | None = None
    relations: Relations | None = None
    history: History | None = None
    shared: Shared = NoShared()


NO_ENGINES = Engines()


class Rules(NamedTuple):
    """How the gate goes about it.

    `observe`: what the policy refuses is recorded, and passes. `record_calls`: every call is
    decided and recorded by itself, with its arguments.
    """

    observe: bool = False
    unlisted_may_add: bool = False
    record_calls: bool = False
    # How long flags are believed without a look at the store, and decisions without a new one.
    enabled_ttl_ns: int = 300 * 10**9
    permission_ttl_ns: int = 60 * 10**9


USUAL = Rules()


class Phases:
    """Registry, capsule, relations, policy. Every engine answers for a whole list at once."""

    def __init__(self, engines: Engines, rules: Rules) -> None:
        self.policy, self.relations, self._history, self._shared = engines
        self._rules = rules
        # What a decision is kept with so that another policy can be asked about it later.
        self._recorded = frozenset({ARGS, TIME}) if rules.record_calls else frozenset[str]()

    @property
    def reads(self) -> frozenset[str]:
        """What of a single call a decision rests on."""
        if self.policy is None:
            return self._recorded
        return (self.policy.reads & PER_CALL) | self._recorded

    async def sift(
        self, moment: Moment, caller: Caller, specs: Iterable[ToolSpec], turn: Turn | None = None
    ) -> Sifted:
        """The first refusal of each tool that has one."""
        sifted = Sifted({}, {})
        left = [spec for spec in specs if not self._kept_back(moment, caller, spec, sifted)]
        if self.relations is not None and left:
            left = await self._related(moment, caller, left, sifted)
        left = [spec for spec in left if not self._layered_out(moment, caller, spec, sifted)]
        if self.policy is not None and left:
            await self._viewed(moment, caller, left, sifted, turn)
        return sifted

    async def executable(
        self, moment: Moment, caller: Caller, specs: Sequence[ToolSpec], *, fresh: bool
    ) -> frozenset[str]:
        """Which of these the relations let the caller execute."""
        engine = self.relations
        names = [spec.name for spec in specs]
        if engine is None:
            return frozenset(names)
        token = moment.world.tenant(caller.tenant).relations_token
        key = "" if fresh else self._shared_key(relations.PHASE, moment, caller, specs)

        def ask() -> Awaitable[frozenset[str]]:
            return engine.executable(caller, names, token=token, fresh=fresh)

        if not key:
            return await ask()
        return await through(self._shared, key, names, self._rules.permission_ttl_ns / 1e9, ask)

    async def request(
        self, moment: Moment, caller: Caller, spec: ToolSpec, args: Any, turn: Turn | None
    ) -> tuple[dict[str, Any], Verdict]:
        """What the policy is asked about this very call, and what it says."""
        asked = await self.question(Action.REQUEST, moment, caller, spec, args, turn)
        return asked, await self._said(asked)

    async def enable(self, moment: Moment, caller: Caller, spec: ToolSpec) -> list[Verdict]:
        """Every verdict about adding this tool."""
        world = moment.world
        found = [
            moment.cascade.refusal(caller, spec, groups_of(spec)) or _LAYERS,
            personas.refusal(caller, spec, world) or _PERSONA,
        ]
        if self.policy is None:
            found.append(personas.may_add(caller, world, unlisted=self._rules.unlisted_may_add))
        else:
            asked = await self.question(Action.ENABLE, moment, caller, spec, None, None)
            verdict = await self._said(asked)
            told = personas.may_add(caller, world, unlisted=self._rules.unlisted_may_add)
            # The policy's no is explained best by the persona's, where that is what it stands on.
            found.append(told if not verdict.allowed and not told.allowed else verdict)
        return found

    async def verdicts(
        self, moment: Moment, caller: Caller, spec: ToolSpec, args: Any, turn: Turn | None
    ) -> list[Verdict]:
        """Every phase's verdict, also beyond the first refusal."""
        snapshot, world, cascade = moment
        found = [
            registry.judge(caller, spec, snapshot, world),
            capsule.judge(caller, spec, world),
            await self._relations_verdict(moment, caller, spec),
            cascade.refusal(caller, spec, groups_of(spec)) or _LAYERS,
            personas.refusal(caller, spec, world) or _PERSONA,
        ]
        if self.policy is not None:
            found.append(await self._policy_verdict(moment, caller, spec, args, turn))
        return found

    async def question(
        self,
        action: Action,
        moment: Moment,
        caller: Caller,
        spec: ToolSpec | None,
        args: Any,
        turn: Turn | None,
    ) -> dict[str, Any]:
        """`input`. What the policy does not read is left out."""
        reads = self.reads
        asked = document.question(
            action, caller, moment.world, unlisted_may_add=self._rules.unlisted_may_add
        )
        if spec is not None:
            asked["tool"] = document.tool_document(spec)
        if action is Action.REQUEST and ARGS in reads and args is not None:
            asked["args"] = args
        if TIME in reads:
            asked["time"] = document.now()
        if HISTORY in reads and self._history is not None:
            asked["history"] = await self._history.of(caller, turn)
        return asked

    def observes(self, verdict: Verdict) -> bool:
        """Whether this refusal is only recorded."""
        return self._rules.observe and verdict.phase == PHASE

    @staticmethod
    def _kept_back(moment: Moment, caller: Caller, spec: ToolSpec, sifted: Sifted) -> bool:
        verdict = registry.judge(caller, spec, moment.snapshot, moment.world)
        if verdict.allowed:
            verdict = capsule.judge(caller, spec, moment.world)
        if not verdict.allowed:
            sifted.refused[spec.name] = verdict
        return not verdict.allowed

    async def _related(
        self, moment: Moment, caller: Caller, specs: list[ToolSpec], sifted: Sifted
    ) -> list[ToolSpec]:
        fresh = len(specs) == 1 and is_dangerous(specs[0])
        executable = await self.executable(moment, caller, specs, fresh=fresh)
        left: list[ToolSpec] = []
        for spec in specs:
            verdict = relations.judge(caller, spec, executable)
            if verdict.allowed:
                left.append(spec)
            else:
                sifted.refused[spec.name] = verdict
        return left

    def _layered_out(self, moment: Moment, caller: Caller, spec: ToolSpec, sifted: Sifted) -> bool:
        cascade = moment.cascade
        verdict = None
        if cascade.steps or cascade.unknown_role:
            verdict = cascade.refusal(caller, spec, groups_of(spec))
        if verdict is None and caller.persona:
            verdict = personas.refusal(caller, spec, moment.world)
        if verdict is None:
            return False
        (sifted.observed if self._rules.observe else sifted.refused)[spec.name] = verdict
        return not self._rules.observe

    async def _viewed(
        self,
        moment: Moment,
        caller: Caller,
        specs: list[ToolSpec],
        sifted: Sifted,
        turn: Turn | None,
    ) -> None:
        try:
            visible = await self._visible(moment, caller, specs, turn)
        except PolicyUnavailable as error:
            if not self._rules.observe:
                raise
            verdict = _unavailable(PHASE, error.message)
            sifted.observed.update({spec.name: verdict for spec in specs})
            return
        into = sifted.observed if self._rules.observe else sifted.refused
        for spec in specs:
            if spec.name not in visible:
                into.setdefault(spec.name, _no_rego(()))

    async def _visible(
        self, moment: Moment, caller: Caller, specs: list[ToolSpec], turn: Turn | None
    ) -> frozenset[str]:
        engine = self.policy
        assert engine is not None  # noqa: S101  the caller looked
        asked = await self.question(Action.VIEW, moment, caller, None, None, turn)
        key = "" if self.reads - {ARGS} else self._shared_key(PHASE, moment, caller, specs)
        if not key:
            return await engine.visible(asked, specs)
        names = [spec.name for spec in specs]
        seconds = self._rules.permission_ttl_ns / 1e9
        return await through(
            self._shared, key, names, seconds, lambda: engine.visible(asked, specs)
        )

    def _shared_key(
        self, phase: str, moment: Moment, caller: Caller, specs: Sequence[ToolSpec]
    ) -> str:
        """Where other nodes may have put the answer; none for what a side effect rests on."""
        is_call = len(specs) == 1 and specs[0].effect is not Effect.PURE
        if is_call or isinstance(self._shared, NoShared):
            return ""
        policy = "" if self.policy is None else self.policy.revision
        asked = [
            phase,
            document.question(Action.VIEW, caller, moment.world, unlisted_may_add=False),
            [moment.world.revision, policy, caller.context.allow, caller.context.deny],
            [(spec.name, spec.fingerprint) for spec in specs],
        ]
        question = hashlib.sha256(orjson.dumps(asked)).hexdigest()
        return permission_key(caller.tenant, caller.persona, question)

    async def _said(self, asked: Mapping[str, Any]) -> Verdict:
        if self.policy is None:
            return _REGO
        try:
            if await self.policy.allows(asked):
                return _REGO
            return _no_rego(await self.policy.reasons(asked))
        except PolicyUnavailable as error:
            if self._rules.observe:
                return _unavailable(PHASE, error.message)
            raise

    async def why(self, moment: Moment, caller: Caller, spec: ToolSpec) -> Verdict:
        """The policy's refusal of a tool that it hides, in its own words."""
        assert self.policy is not None  # noqa: S101  only a policy hides by Rego
        asked = await self.question(Action.REQUEST, moment, caller, spec, None, None)
        return _no_rego(await self.policy.reasons(asked))

    async def _relations_verdict(self, moment: Moment, caller: Caller, spec: ToolSpec) -> Verdict:
        if self.relations is None:
            return relations.OFF
        try:
            executable = await self.executable(moment, caller, [spec], fresh=True)
        except RelationsUnavailable as error:
            return _unavailable(relations.PHASE, error.message)
        return relations.judge(caller, spec, executable)

    async def _policy_verdict(
        self, moment: Moment, caller: Caller, spec: ToolSpec, args: Any, turn: Turn | None
    ) -> Verdict:
        assert self.policy is not None  # noqa: S101  the caller looked
        try:
            asked = await self.question(Action.VIEW, moment, caller, None, None, turn)
            if spec.name not in await self.policy.visible(asked, [spec]):
                return await self.why(moment, caller, spec)
            if args is None:
                return _REGO
            asked = await self.question(Action.REQUEST, moment, caller, spec, args, turn)
            return await self._said(asked)
        except PolicyUnavailable as error:
            return _unavailable(PHASE, error.message)


def is_dangerous(spec: ToolSpec) -> bool:
    """What cannot be taken back is asked about as of now, whatever it costs."""
    return spec.destructive or spec.effect is Effect.IRREVERSIBLE


def _no_rego(reasons: Sequence[str]) -> Verdict:
    return Verdict(
        phase=PHASE,
        allowed=False,
        rule="rego",
        reason="; ".join(reasons) or _OBSERVED,
        remedy="Change the rule or the data that refuses it, and try: toolgate policy test",
    )


def _unavailable(phase: str, told: str) -> Verdict:
    return Verdict(
        phase=phase,
        allowed=False,
        rule="unavailable",
        reason=told,
        remedy="Look at the engine's health: toolgate doctor",
    )
