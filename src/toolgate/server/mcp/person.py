"""A call that waits for a person: the client puts the question to them, if it can."""

from collections.abc import Mapping
from typing import Any, cast

from toolgate.call import Output
from toolgate.errors import ApprovalDenied, ApprovalPending, CallRefused, ToolgateError
from toolgate.executor.people.desk import MOST_SHOWN, told
from toolgate.ledger.approval import Decider
from toolgate.server.mcp.exchange import Exchange

NAME = "toolgate/confirm"
_FIELD = "confirm"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        _FIELD: {
            "type": "boolean",
            "title": "Let it run",
            "description": "Whether this very call may run, once.",
        }
    },
    "required": [_FIELD],
}


def waits_for(output: Output) -> str:
    """The approval that a call waits for; nothing where it waits for none."""
    if output.status != "pending_approval" or output.error is None:
        return ""
    found = output.error.details.get("approval_id")
    return found if isinstance(found, str) else ""


async def question(exchange: Exchange, approval_id: str) -> dict[str, Any] | None:
    """The form that is put to the person; `None` where it has to be done elsewhere."""
    if "elicitation" not in exchange.peer.capabilities:
        return None
    found = await exchange.gate.approvals.find(approval_id, by=decider(exchange))
    # Whoever could not decide it is not asked: their yes would let nothing run.
    if found is None or not _may_decide(exchange, str(found.kind)):
        return None
    shown = told(found, whole=True)
    if shown["args_length"] > MOST_SHOWN:
        # Nobody agrees to what they could not look at.
        return None
    message = f"{shown['prompt']}\n\n{shown['tool']} {shown['args']}"
    return {"mode": "form", "message": message, "requestedSchema": _SCHEMA}


async def decided(exchange: Exchange, approval_id: str, said: Any) -> None:
    """Put the person's word on record. What is neither yes nor no leaves it waiting."""
    answer = word(said)
    if answer is None or not approval_id:
        return
    desk, by = exchange.gate.approvals, decider(exchange)
    found = await desk.find(approval_id, by=by)
    if found is None or not _may_decide(exchange, str(found.kind)):
        return
    try:
        if answer:
            await desk.approve(approval_id, by=by, reason="confirmed through the client")
        else:
            await desk.deny(approval_id, by=by, reason="declined through the client")
    except ToolgateError:
        # It was decided meanwhile, or is not theirs to decide: the call itself says how it stands.
        return


def decider(exchange: Exchange) -> Decider:
    """The person that the client acts for."""
    key = exchange.peer.key
    return Decider(
        who=f"{key.user} ({key.id})" if key.user else key.id,
        is_operator=False,
        reach=key.tenant,
        tenant=key.tenant,
        agent=key.agent,
        user=key.user,
    )


def _may_decide(exchange: Exchange, kind: str) -> bool:
    return kind == "confirmation" and bool(exchange.peer.key.user)


def refusal(tool: str, said: Any, approval_id: str) -> CallRefused:
    """Why nothing ran, after an answer that was no yes."""
    if word(said) is False:
        return ApprovalDenied(
            f"The person said no to this call of {tool!r}. This request ran nothing: do without "
            "it, or ask for something else.",
            approval_id=approval_id,
        )
    return ApprovalPending(
        f"Nobody has answered for this call of {tool!r} yet. This request ran nothing: call it "
        f"again to be asked again, or have it decided: toolgate approvals approve {approval_id}",
        approval_id=approval_id,
    )


def word(said: Any) -> bool | None:
    """Yes, no, or neither."""
    if type(said) is not dict:
        return None
    answer = cast("Mapping[str, Any]", said)
    if answer.get("action") == "decline":
        return False
    content = answer.get("content")
    if answer.get("action") != "accept" or type(content) is not dict:
        return None
    confirmed = cast("dict[str, Any]", content).get(_FIELD)
    return confirmed if type(confirmed) is bool else None
