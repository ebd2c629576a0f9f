"""Phase 2: the tool is in the agent's capsule."""

from toolgate.call import Caller
from toolgate.gate.decision import Verdict
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.world import World

PHASE = "capsule"
_TENANTS = Verdict(
    phase=PHASE, allowed=True, rule="all", reason="the agent has all that its tenant has"
)
_LISTED = Verdict(phase=PHASE, allowed=True, rule="listed", reason="the capsule lists it")


def judge(caller: Caller, spec: ToolSpec, world: World) -> Verdict:
    """A capsule lists its tools, or takes all that the tenant has except those switched off."""
    capsule = world.capsule(caller.tenant, caller.agent)
    activation = capsule.activations.get(spec.name)
    if capsule.has(spec.name):
        return _TENANTS if activation is None else _LISTED
    return Verdict(
        phase=PHASE,
        allowed=False,
        rule="not_listed" if activation is None else "switched_off",
        reason=f"agent {caller.agent!r} "
        + ("does not list it" if activation is None else "has it switched off"),
        remedy=f"toolgate tools enable {spec.name} --tenant {caller.tenant} --agent {caller.agent}",
    )
