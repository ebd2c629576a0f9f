"""Phase 2: the tool is in the agent's capsule, and in that of every agent it acts for."""

import msgspec

from toolgate.caller import Caller
from toolgate.gate.decision import Verdict
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.capsule import NOTHING
from toolgate.tenancy.names import nearest
from toolgate.tenancy.world import World

PHASE = "capsule"
_TENANTS = Verdict(
    phase=PHASE, allowed=True, rule="all", reason="the agent has all that its tenant has"
)
_LISTED = Verdict(phase=PHASE, allowed=True, rule="listed", reason="the capsule lists it")


def judge(caller: Caller, spec: ToolSpec, world: World) -> Verdict:
    """A capsule lists its tools, or takes all that the tenant has except those switched off."""
    verdict = _judged(caller.tenant, caller.agent, spec, world)
    # Who hands a task on cannot hand on more than it has.
    for step in caller.delegation:
        if not verdict.allowed:
            break
        before = _judged(caller.tenant, step.by, spec, world)
        verdict = verdict if before.allowed else before
    return verdict


def hinted(verdict: Verdict, caller: Caller, world: World) -> Verdict:
    """For an operator, who may have meant another agent: one that nobody has set up has all that
    its tenant has, so that a name in the wrong spelling looks like one that may do much.
    """
    own = world.tenant(caller.tenant)
    if verdict.phase != PHASE or caller.agent in own.capsules or caller.agent in own.removed:
        return verdict
    meant = nearest(caller.agent, own.capsules)
    if not meant:
        return verdict
    reason = f"{verdict.reason}; nobody has set up {caller.agent!r}.{meant}"
    return msgspec.structs.replace(verdict, reason=reason)


def needs_a_person(
    caller: Caller, spec: ToolSpec, world: World, *, destructive: bool = True
) -> bool:
    """An agent's override can ask for more care, never for less.

    `destructive`: whether it is reason enough that the tool destroys.
    """
    destroys = destructive and spec.destructive
    if spec.requires_confirmation or spec.requires_approval or destroys:
        return True
    return _overridden(caller, spec, world, "requires_confirmation", "requires_approval")


def needs_another(
    caller: Caller, spec: ToolSpec, world: World, *, destructive: bool = True
) -> bool:
    """Whether that person has to be another one than the user that the agent acts for."""
    if spec.requires_approval or (destructive and spec.destructive):
        return True
    return _overridden(caller, spec, world, "requires_approval")


def _overridden(caller: Caller, spec: ToolSpec, world: World, *fields: str) -> bool:
    return any(
        world.capsule(caller.tenant, agent).overrides(spec.name).get(field)
        for agent in (caller.agent, *(step.by for step in caller.delegation))
        for field in fields
    )


def _judged(tenant: str, agent: str, spec: ToolSpec, world: World) -> Verdict:
    capsule = world.capsule(tenant, agent)
    activation = capsule.activations.get(spec.name)
    if capsule.has(spec.name):
        return _TENANTS if activation is None else _LISTED
    if capsule is NOTHING:
        return Verdict(
            phase=PHASE,
            allowed=False,
            rule="removed",
            reason=f"agent {agent!r} was removed",
            remedy=f"toolgate agents set {agent} --tenant {tenant}",
        )
    return Verdict(
        phase=PHASE,
        allowed=False,
        rule="not_listed" if activation is None else "switched_off",
        reason=f"agent {agent!r} "
        + ("does not list it" if activation is None else "has it switched off"),
        remedy=f"toolgate tools enable {spec.name} --tenant {tenant} --agent {agent}",
    )
