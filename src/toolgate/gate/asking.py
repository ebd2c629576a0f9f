"""Asking the engines: what each is told, how fresh its answer has to be, who else may know it."""

import hashlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from toolgate import clock
from toolgate.call import Turn
from toolgate.caller import Action, Caller
from toolgate.errors import PolicyUnavailable, RelationsUnavailable
from toolgate.gate import document, relations
from toolgate.gate.decision import Verdict
from toolgate.gate.moment import Moment
from toolgate.gate.policy import ARGS, HISTORY, PER_CALL, PHASE, TIME, History, Policy, Remote
from toolgate.gate.relations import Relations
from toolgate.gate.shared import NoShared, Shared, permission_key, through
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

_REGO = Verdict(phase=PHASE, allowed=True, rule="rego", reason="the policy allows it")


class Engines(NamedTuple):
    """What answers the last two phases. Without relations that phase lets everything pass."""

    policy: Policy | None = None
    relations: Relations | None = None
    history: History | None = None
    shared: Shared = NoShared()
    remote: tuple[Remote, ...] = ()


class Rules(NamedTuple):
    """How the gate goes about it.

    `observe`: what the policy refuses is recorded, and passes. `record_calls`: every call is
    decided and recorded by itself, with its arguments. `cascading`: whether layers are looked at,
    or only the permissions of roles. `destructive_waits`: whether what destroys waits for a person.
    """

    observe: bool = False
    unlisted_may_add: bool = False
    record_calls: bool = False
    # How long flags are believed without a look at the store, and decisions without a new one.
    enabled_ttl_ns: int = 300 * 10**9
    permission_ttl_ns: int = 60 * 10**9
    cascading: bool = True
    destructive_waits: bool = True


class Asking:
    """One engine for relations, one for the policy; or none."""

    def __init__(self, engines: Engines, rules: Rules) -> None:
        self.policy, self.relations, self._history, self._shared = engines[:4]
        self._rules = rules
        # What a decision is kept with so that another policy can be asked about it later.
        self._recorded = frozenset({ARGS, TIME}) if rules.record_calls else frozenset[str]()

    @property
    def reads(self) -> frozenset[str]:
        """What of a single call a decision rests on."""
        if self.policy is None:
            return self._recorded
        return (self.policy.reads & PER_CALL) | self._recorded

    async def question(
        self,
        action: Action,
        moment: Moment,
        caller: Caller,
        spec: ToolSpec | None,
        args: Any = None,
        turn: Turn | None = None,
    ) -> dict[str, Any]:
        """`input`. What no decision rests on is left out."""
        reads = self.reads
        asked = document.question(
            action, caller, moment.world, unlisted_may_add=self._rules.unlisted_may_add
        )
        if spec is not None:
            asked["tool"] = document.tool_document(spec)
        if action is Action.REQUEST and ARGS in reads and args is not None:
            asked["args"] = args
        if TIME in reads:
            asked["time"] = document.time_document(clock.utc_now())
        if HISTORY in reads and self._history is not None:
            asked["history"] = await self._history.of(caller, turn)
        return asked

    async def said(self, asked: Mapping[str, Any]) -> Verdict:
        """What the policy says about this very question."""
        if self.policy is None or await self.policy.allows(asked):
            return _REGO
        return refused(await self.policy.reasons(asked))

    async def shown(
        self, moment: Moment, caller: Caller, spec: ToolSpec, turn: Turn | None
    ) -> Verdict:
        """Whether the policy shows this tool, and in its own words why not."""
        if spec.name in await self.visible(moment, caller, [spec], turn):
            return _REGO
        return await self.why(moment, caller, spec)

    async def why(self, moment: Moment, caller: Caller, spec: ToolSpec) -> Verdict:
        """The policy's refusal of a tool that it hides, in its own words."""
        if self.policy is None:
            return refused(())
        asked = await self.question(Action.REQUEST, moment, caller, spec)
        return refused(await self.policy.reasons(asked))

    async def visible(
        self, moment: Moment, caller: Caller, specs: Sequence[ToolSpec], turn: Turn | None
    ) -> frozenset[str]:
        """Which of these the policy shows, in one question."""
        engine = self.policy
        names = [spec.name for spec in specs]
        if engine is None:
            return frozenset(names)
        asked = await self.question(Action.VIEW, moment, caller, None, None, turn)
        key = ""
        # While the engine is away, what it said to others before counts no more than here.
        if not self.reads - {ARGS} and engine.health().serves:
            key = self._shared_key(PHASE, moment, caller, specs)
        if not key:
            return await engine.visible(asked, specs)
        seconds = self._rules.permission_ttl_ns / 1e9
        return await through(
            self._shared, key, names, seconds, lambda: engine.visible(asked, specs)
        )

    async def executable(
        self, moment: Moment, caller: Caller, specs: Sequence[ToolSpec], *, fresh: bool
    ) -> frozenset[str]:
        """Which of these the relations let the caller execute, in one question."""
        engine = self.relations
        names = [spec.name for spec in specs]
        if engine is None:
            return frozenset(names)
        token = moment.world.tenant(caller.tenant).relations_token
        key = ""
        if not fresh and engine.health().serves:
            key = self._shared_key(relations.PHASE, moment, caller, specs)

        def ask() -> Awaitable[frozenset[str]]:
            return engine.executable(caller, names, token=token, fresh=fresh)

        if not key:
            return await ask()
        return await through(self._shared, key, names, self._rules.permission_ttl_ns / 1e9, ask)

    async def related(self, moment: Moment, caller: Caller, spec: ToolSpec) -> Verdict:
        """The verdict of the relations as of now."""
        if self.relations is None:
            return relations.OFF
        executable = await self.executable(moment, caller, [spec], fresh=True)
        return relations.judge(caller, spec, executable)

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
            [moment.world.revision, policy],
            [(spec.name, spec.fingerprint) for spec in specs],
        ]
        question = hashlib.sha256(orjson.dumps(asked)).hexdigest()
        return permission_key(caller.tenant, caller.persona, question)


def refused(reasons: Sequence[str]) -> Verdict:
    """The policy's no."""
    return Verdict(
        phase=PHASE,
        allowed=False,
        rule="rego",
        reason="; ".join(reasons) or "the policy refuses it",
        remedy="Change the rule or the data that refuses it, and try: toolgate policy test",
    )


def unavailable(error: PolicyUnavailable | RelationsUnavailable) -> Verdict:
    """Nobody can tell, which is a no."""
    return Verdict(
        phase=PHASE if isinstance(error, PolicyUnavailable) else relations.PHASE,
        allowed=False,
        rule="unavailable",
        reason=error.message.rstrip("."),
        remedy="Look at the engine's health: toolgate doctor",
    )
