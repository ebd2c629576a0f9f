"""Phase 3: the user stands in a relation to the tool that lets it be executed."""

import shlex
from collections.abc import Sequence
from typing import Protocol

from toolgate.caller import Caller
from toolgate.errors import InvalidRequest
from toolgate.gate.decision import Verdict
from toolgate.gate.policy import Health
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.relation import Relation, checked

PHASE = "relations"
OFF = Verdict(phase=PHASE, allowed=True, rule="off", reason="relations are not asked for")
_RELATED = Verdict(
    phase=PHASE, allowed=True, rule="execute", reason="is its owner or executor, or belongs to them"
)


class Relations(Protocol):
    """Who may execute what. An engine in this house or elsewhere."""

    @property
    def external(self) -> bool:
        """Whether others write to it too, so that a revision of ours does not cover it."""
        ...

    async def executable(
        self, caller: Caller, tools: Sequence[str], *, token: str = "", fresh: bool = False
    ) -> frozenset[str]:
        """Of these tools, those that the caller's user may execute, in one question.

        `token`: at least as fresh as the write that gave it; `fresh`: as of now, whatever it costs.
        `RelationsUnavailable` where nobody can tell.
        """
        ...

    def health(self) -> Health:
        """How it is doing."""
        ...


def subject_of(caller: Caller) -> tuple[str, str] | None:
    """Who is asked about: the user, or an agent that acts for nobody."""
    if caller.user:
        return "user", caller.user
    return ("agent", caller.agent) if caller.agent else None


def judge(caller: Caller, spec: ToolSpec, executable: frozenset[str]) -> Verdict:
    """The verdict for a tool, given those that the caller may execute."""
    if spec.name in executable:
        return _RELATED
    subject = subject_of(caller)
    if subject is None:
        return Verdict(
            phase=PHASE,
            allowed=False,
            rule="nobody",
            reason="the call names no user and no agent, and relations are asked for",
            remedy="Call for a user: Caller(tenant=…, user=…), or a key with --user.",
        )
    kind, name = subject
    return Verdict(
        phase=PHASE,
        allowed=False,
        rule="no_execute",
        reason=f"{kind} {name!r} is not its owner or executor, nor in a group or team that is",
        remedy=_remedy(caller.tenant, Relation("tool", spec.name, "executor", kind, name)),
    )


def _remedy(tenant: str, missing: Relation) -> str:
    """A name is whatever a caller says; a command that somebody pastes must hold it as one."""
    try:
        checked(missing)
    except InvalidRequest as error:
        return f"Call for another {missing.subject_kind}. {error.message}"
    return f"toolgate relations add {shlex.quote(str(missing))} --tenant {tenant}"
