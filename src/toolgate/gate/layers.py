"""Phase 4 begins with layers: global, role, task, delegation. Each can only take tools away."""

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from toolgate.caller import Caller
from toolgate.errors import InvalidRequest
from toolgate.gate.decision import Verdict
from toolgate.gate.policy import PHASE
from toolgate.gate.selection import selection
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.layer import Layer, roles_of
from toolgate.tenancy.names import label
from toolgate.tenancy.rules import PERMISSIONS
from toolgate.tenancy.world import World

_MOST_NAMED = 10
_READ_ONLY = Layer(deny=("group:write",))
_NO_WEB = Layer(deny=("group:web",))


class Step(NamedTuple):
    """One layer of a caller's cascade: what it is called, and how an operator would change it."""

    rule: str
    called: str
    layer: Layer
    remedy: str


class Cascade(NamedTuple):
    """The layers of one caller, in their order; or why none of them matters."""

    steps: tuple[Step, ...]
    unknown_role: str = ""
    known_roles: frozenset[str] = frozenset()

    def refusal(self, caller: Caller, spec: ToolSpec, groups: frozenset[str]) -> Verdict | None:
        """The first layer that does not leave this tool."""
        if self.unknown_role:
            return _unknown(caller, spec, self.unknown_role, self.known_roles)
        for step in self.steps:
            allow, deny = step.layer.allow, step.layer.deny
            denied = bool(deny) and selection(deny).has(spec, groups)
            if denied or (allow is not None and not selection(allow).has(spec, groups)):
                return _refused(step, spec, denied=denied)
        return None


def cascade(caller: Caller, world: World) -> Cascade:
    """Global, then the caller's roles, then its task, then each delegation."""
    everyone, tenant = world.everyone.layers, world.tenant(caller.tenant).layers
    known = roles_of(everyone) | roles_of(tenant)
    if known:
        # Roles mean something here, so one that nobody has defined is a mistake, and means no.
        unknown = next((role for role in caller.roles if role not in known), None)
        if unknown is not None:
            return Cascade((), unknown or "(empty)", known)
    return Cascade(tuple(_steps(caller, world)))


def flat(caller: Caller, world: World) -> Cascade:
    """Only the permissions of the caller's roles: nothing global, of a task or of a delegation."""
    whole = cascade(caller, world)
    return whole._replace(steps=tuple(_permissions(caller, world)))


def _permissions(caller: Caller, world: World) -> Iterator[Step]:
    places = (("", world.everyone.layers), (caller.tenant, world.tenant(caller.tenant).layers))
    for role in dict.fromkeys(caller.roles):
        for tenant, layers in places:
            layer = layers.get((role, PERMISSIONS))
            if layer is not None:
                yield _stored(role, tenant, PERMISSIONS, layer)


def _steps(caller: Caller, world: World) -> Iterator[Step]:
    places = (("", world.everyone.layers), (caller.tenant, world.tenant(caller.tenant).layers))
    for role in ("", *dict.fromkeys(caller.roles)):
        for tenant, layers in places:
            for (whose, name), layer in sorted(layers.items(), key=lambda item: item[0]):
                if whose == role:
                    yield _stored(role, tenant, name, layer)
    context = caller.context
    if context.read_only:
        yield Step("task:read_only", "the task is read_only", _READ_ONLY, _TASK)
    if context.no_web:
        yield Step("task:no_web", "the task has no_web", _NO_WEB, _TASK)
    if context.allow is not None or context.deny:
        layer = Layer(allow=context.allow, deny=context.deny)
        yield Step("task", "the task leaves it out", layer, _TASK)
    for number, step in enumerate(caller.delegation, 1):
        if step.allow is not None or step.deny:
            yield Step(
                f"delegation:{number}",
                f"agent {step.by!r} did not hand it on",
                Layer(allow=step.allow, deny=step.deny),
                f"Let agent {step.by!r} hand it on: caller.delegate(…, allow=[…]).",
            )


_TASK = "Call it in a task that allows it: change the context of the call."


def _stored(role: str, tenant: str, name: str, layer: Layer) -> Step:
    whom = f"role {role!r}" if role else "everybody"
    where = f" in tenant {tenant!r}" if tenant else ""
    options = (f" --role {role}" if role else "") + (f" --tenant {tenant}" if tenant else "")
    return Step(
        f"role:{role}" if role else "global",
        f"layer {name!r} of {whom}{where}",
        layer,
        f"toolgate layers permit {name} {{tool}}{options}",
    )


def _refused(step: Step, spec: ToolSpec, *, denied: bool) -> Verdict:
    stored = "{tool}" in step.remedy
    reason, remedy = step.called, step.remedy
    if stored:
        reason += " denies it" if denied else " does not allow it"
        remedy = remedy.replace("{tool}", spec.name)
        if denied and spec.name not in step.layer.deny:
            # A command cannot know which of the denied selectors an operator would give up.
            listed = ", ".join(step.layer.deny)
            remedy = f"Take what denies it out of its list ({listed}): {_set_of(step)}"
    if step.layer.reason:
        reason += f": {step.layer.reason}"
    return Verdict(phase=PHASE, allowed=False, rule=step.rule, reason=reason, remedy=remedy)


def _set_of(step: Step) -> str:
    return step.remedy.replace("permit", "set").replace(" {tool}", "") + " --deny …"


def _unknown(caller: Caller, spec: ToolSpec, role: str, known: frozenset[str]) -> Verdict:
    named = ", ".join(sorted(known)[:_MOST_NAMED]) + (", …" if len(known) > _MOST_NAMED else "")
    # A command that defines a role allows this one tool: what else it is for, nobody here knows.
    define = ["toolgate", "roles", "set", role, "--tools", spec.name, "--tenant", caller.tenant]
    remedy = (
        f"Call with a role that is on record (known here: {named}), or say what this one may use, "
        f"and no more: {shlex.join(define)}"
    )
    try:
        label("role", role)
    except InvalidRequest as error:
        remedy = f"Call without this role. {error.message}"
    return Verdict(
        phase=PHASE,
        allowed=False,
        rule="unknown_role",
        reason=f"role {role!r} is not on record, and other roles are",
        remedy=remedy,
    )
