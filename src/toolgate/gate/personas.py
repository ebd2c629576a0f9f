"""Phase 4, in its middle: what a persona is kept from, and whether it may add tools."""

from toolgate.caller import Caller
from toolgate.errors import InvalidRequest
from toolgate.gate.decision import Verdict
from toolgate.gate.policy import PHASE
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.names import label
from toolgate.tenancy.world import World

RULE = "persona"


def refusal(caller: Caller, spec: ToolSpec, world: World) -> Verdict | None:
    """Why the persona may not use this tool."""
    restriction = world.persona(caller.persona).restrictions.get(spec.name)
    if restriction is None or restriction.allowed:
        return None
    why = f": {restriction.reason}" if restriction.reason else ""
    return Verdict(
        phase=PHASE,
        allowed=False,
        rule=RULE,
        reason=f"persona {caller.persona!r} is kept from it{why}",
        remedy=f"toolgate personas allow {caller.persona} {spec.name}",
    )


def may_add(caller: Caller, world: World, *, unlisted: bool) -> Verdict:
    """Whether the persona may add tools; one that nobody has spoken of may where a setting says."""
    said = world.persona(caller.persona).can_add_tools
    allowed = unlisted if said is None else said
    if allowed:
        return Verdict(phase=PHASE, allowed=True, rule=RULE, reason="the persona may add tools")
    remedy = f"toolgate personas set {caller.persona} --can-add-tools"
    try:
        label("persona", caller.persona)
    except InvalidRequest as error:
        remedy = f"Call as another persona. {error.message}"
    return Verdict(
        phase=PHASE,
        allowed=False,
        rule=RULE,
        reason=f"persona {caller.persona!r} may not add tools"
        + ("" if said is not None else ": nobody has said that it may"),
        remedy=remedy,
    )
