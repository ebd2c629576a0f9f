"""A call that waits for a person: the client puts the question to them, if it can."""

from collections.abc import Mapping
from typing import Any, cast

from toolgate.call import Output
from toolgate.errors import ToolgateError
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
    if found is None:
        return None
    shown = told(found, whole=True)
    if shown["args_length"] > MOST_SHOWN:
        # Nobody agrees to what they could not look at.
        return None
    message = f"{shown['prompt']}\n\n{shown['tool']} {shown['args']}"
    if not _may_decide(exchange, shown["kind"]):
        message += (
            f"\n\nSomebody else has to approve this: toolgate approvals approve {approval_id}. "
            "Confirm here once that is done."
        )
    return {"mode": "form", "message": message, "requestedSchema": _SCHEMA}


async def decided(exchange: Exchange, approval_id: str, said: Any) -> None:
    """Put the person's word on record. What is neither yes nor no leaves it waiting."""
    word = _word(said)
    if word is None or not approval_id:
        return
    desk, by = exchange.gate.approvals, decider(exchange)
    found = await desk.find(approval_id, by=by)
    if found is None or not _may_decide(exchange, str(found.kind)):
        return
    try:
        if word:
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


def _word(said: Any) -> bool | None:
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
