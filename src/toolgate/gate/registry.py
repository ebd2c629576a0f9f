"""Phase 1: the tool is switched on, here and for this tenant, and something can run it."""

import msgspec

from toolgate.caller import Caller
from toolgate.catalog.snapshot import Snapshot
from toolgate.gate.decision import Verdict
from toolgate.spec.effect import CallerKind, Effect
from toolgate.spec.tool import BUILT_IN, ToolSpec
from toolgate.tenancy.names import nearest
from toolgate.tenancy.world import World

PHASE = "registry"
# What follows them is for somebody else to decide.
_ROUTING = frozenset({"delegate", "escalate"})
_LACKING = (
    "Install what it needs where toolgate runs, or a version that has it; "
    "[tools] builtin can leave it out until then."
)
_IMPORTED = (
    "Its definition is made from an OpenAPI document: set what it lacks in the settings, or change "
    "what it is imported with."
)
_CODE = "Correct that in its definition, or in the module that it names."
_DATA = "Correct that in its definition, or in the settings."
MISSING = Verdict(
    phase=PHASE,
    allowed=False,
    rule="missing",
    reason="no source has a tool of this name",
    remedy="Check the name with: toolgate tools list",
)
_ENABLED = Verdict(phase=PHASE, allowed=True, rule="enabled", reason="switched on for everyone")
_FOR_TENANT = Verdict(
    phase=PHASE, allowed=True, rule="tenant_flag", reason="switched on for this tenant"
)


def missing(name: str, snapshot: Snapshot) -> Verdict:
    """The same for an operator who may have meant another one."""
    meant = nearest(name, snapshot.specs)
    remedy = f"{meant.strip()} {MISSING.remedy}" if meant else MISSING.remedy
    return msgspec.structs.replace(MISSING, remedy=remedy)


def judge(caller: Caller, spec: ToolSpec, snapshot: Snapshot, world: World) -> Verdict:
    """The tenant's flag overrides the flag for everyone, which overrides the definition."""
    name = spec.name
    if name in snapshot.unusable:
        return _no("implementation", snapshot.unusable[name], _help(spec))
    unreached = _unreached(caller, spec)
    if unreached is not None:
        return unreached
    flag = world.flags(caller.tenant).get(name)
    if flag is not None:
        if flag:
            return _FOR_TENANT
        return _no(
            "tenant_flag",
            f"switched off for tenant {caller.tenant!r}",
            f"toolgate tools enable {name} --tenant {caller.tenant}",
        )
    flag = world.everyone.flags.get(name)
    if flag if flag is not None else spec.enabled:
        return _ENABLED
    rule, why = ("enabled", "its definition says enabled: false")
    if flag is not None:
        rule, why = ("tool_flag", "switched off for everyone")
    return _no(rule, why, f"toolgate tools enable {name}")


def _help(spec: ToolSpec) -> str:
    kind, where = spec.origin.kind, spec.origin.where
    if where == BUILT_IN:
        return _LACKING
    if kind == "openapi" or where.endswith((".openapi", ".openapi.yaml", ".openapi.json")):
        return _IMPORTED
    return _CODE if spec.provider == "python" else _DATA


def _unreached(caller: Caller, spec: ToolSpec) -> Verdict | None:
    if caller.kind is CallerKind.DIRECT:
        if CallerKind.DIRECT in spec.allowed_callers:
            return None
        return _no(
            "allowed_callers",
            "it may only run inside a chain",
            "Add direct to its allowed_callers.",
        )
    if spec.name in _ROUTING:
        return _no("allowed_callers", "it hands the task on, which no chain may", "")
    if spec.effect is Effect.PURE or CallerKind.CHAIN in spec.allowed_callers:
        return None
    return _no(
        "allowed_callers",
        "it changes something and may not run inside a chain",
        "Add chain to its allowed_callers.",
    )


def _no(rule: str, reason: str, remedy: str) -> Verdict:
    return Verdict(phase=PHASE, allowed=False, rule=rule, reason=reason, remedy=remedy)
