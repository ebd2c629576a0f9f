"""The four phases in their order, over one tool or over all of them: the same questions, once."""

from collections.abc import Iterable
from typing import Any

from toolgate.call import Turn
from toolgate.caller import Action, Caller
from toolgate.errors import PolicyUnavailable, RelationsUnavailable
from toolgate.gate import capsule, personas, registry, relations
from toolgate.gate.asking import Asking, Engines, Rules, refused, unavailable
from toolgate.gate.decision import Verdict
from toolgate.gate.groups import groups_of
from toolgate.gate.moment import Moment, Sifted
from toolgate.gate.policy import PHASE
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

_LAYERS = Verdict(phase=PHASE, allowed=True, rule="layers", reason="every layer leaves it")
_PERSONA = Verdict(
    phase=PHASE, allowed=True, rule="persona", reason="the persona is not kept from it"
)


class Phases(Asking):
    """Registry, capsule, relations, policy. Every engine answers for a whole list at once."""

    def __init__(self, engines: Engines, rules: Rules) -> None:
        super().__init__(engines, rules)
        self._observe = rules.observe
        self._unlisted_may_add = rules.unlisted_may_add

    def observes(self, verdict: Verdict) -> bool:
        """Whether this refusal is only recorded."""
        return self._observe and verdict.phase == PHASE

    async def sift(
        self, moment: Moment, caller: Caller, specs: Iterable[ToolSpec], turn: Turn | None = None
    ) -> Sifted:
        """The first refusal of each tool that has one."""
        sifted = Sifted({}, {})
        left = [spec for spec in specs if not _kept_back(moment, caller, spec, sifted)]
        if self.relations is not None and left:
            left = await self._related(moment, caller, left, sifted)
        left = [spec for spec in left if not self._layered_out(moment, caller, spec, sifted)]
        if self.policy is not None and left:
            await self._viewed(moment, caller, left, sifted, turn)
        return sifted

    async def request(
        self, moment: Moment, caller: Caller, spec: ToolSpec, args: Any, turn: Turn | None
    ) -> tuple[dict[str, Any], Verdict]:
        """What the policy is asked about this very call, and what it says."""
        asked = await self.question(Action.REQUEST, moment, caller, spec, args, turn)
        try:
            return asked, await self.said(asked)
        except PolicyUnavailable as error:
            if not self._observe:
                raise
            return asked, unavailable(error)

    async def enable(self, moment: Moment, caller: Caller, spec: ToolSpec) -> list[Verdict]:
        """Every verdict about adding this tool."""
        world = moment.world
        persona = personas.may_add(caller, world, unlisted=self._unlisted_may_add)
        found = [
            moment.cascade.refusal(caller, spec, groups_of(spec)) or _LAYERS,
            personas.refusal(caller, spec, world) or _PERSONA,
        ]
        if self.policy is None:
            return [*found, persona]
        verdict = await self.said(await self.question(Action.ENABLE, moment, caller, spec))
        # The policy's no is explained best by the persona's, where that is what it stands on.
        return [*found, persona if not verdict.allowed and not persona.allowed else verdict]

    async def verdicts(
        self, moment: Moment, caller: Caller, spec: ToolSpec, args: Any, turn: Turn | None
    ) -> list[Verdict]:
        """Every phase's verdict, also beyond the first refusal."""
        snapshot, world, cascade = moment
        found = [
            registry.judge(caller, spec, snapshot, world),
            capsule.judge(caller, spec, world),
        ]
        try:
            found.append(await self.related(moment, caller, spec))
        except RelationsUnavailable as error:
            found.append(unavailable(error))
        found += [
            cascade.refusal(caller, spec, groups_of(spec)) or _LAYERS,
            personas.refusal(caller, spec, world) or _PERSONA,
        ]
        if self.policy is not None:
            try:
                verdict = await self.shown(moment, caller, spec, turn)
                if verdict.allowed and args is not None:
                    asked = await self.question(Action.REQUEST, moment, caller, spec, args, turn)
                    verdict = await self.said(asked)
            except PolicyUnavailable as error:
                verdict = unavailable(error)
            found.append(verdict)
        return found

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
        (sifted.observed if self._observe else sifted.refused)[spec.name] = verdict
        return not self._observe

    async def _viewed(
        self,
        moment: Moment,
        caller: Caller,
        specs: list[ToolSpec],
        sifted: Sifted,
        turn: Turn | None,
    ) -> None:
        into = sifted.observed if self._observe else sifted.refused
        verdict = refused(())
        try:
            visible = await self.visible(moment, caller, specs, turn)
        except PolicyUnavailable as error:
            if not self._observe:
                raise
            visible, verdict = frozenset[str](), unavailable(error)
        for spec in specs:
            if spec.name not in visible:
                into.setdefault(spec.name, verdict)


def is_dangerous(spec: ToolSpec) -> bool:
    """What cannot be taken back is asked about as of now, whatever it costs."""
    return spec.destructive or spec.effect is Effect.IRREVERSIBLE


def _kept_back(moment: Moment, caller: Caller, spec: ToolSpec, sifted: Sifted) -> bool:
    verdict = registry.judge(caller, spec, moment.snapshot, moment.world)
    if verdict.allowed:
        verdict = capsule.judge(caller, spec, moment.world)
    if not verdict.allowed:
        sifted.refused[spec.name] = verdict
    return not verdict.allowed
