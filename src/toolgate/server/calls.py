"""`POST /v1/call`: what the wire says becomes one call."""

from typing import Any, NamedTuple, cast

from toolgate.call import Caller, Context, Output, Turn
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.runtime import Runtime
from toolgate.server.context import read_context, read_session
from toolgate.spec.names import for_model, from_model

_KNOWN = frozenset({"tool", "args", "turn", "session", "context"})
_LATER = frozenset({"idempotency_key", "wait_s"})


class Asked(NamedTuple):
    """One call, as the wire says it."""

    tool: str
    args: dict[str, Any] | None
    turn: Turn | None
    context: Context
    session: str


def read_call(body: dict[str, Any]) -> Asked:
    """Tool, arguments, turn, context and session, or `InvalidRequest` that says what to send."""
    for field in body.keys() - _KNOWN:
        if field in _LATER:
            raise InvalidRequest(f"{field!r} is not available in this version; leave it out.")
        raise InvalidRequest(
            f"{field[:60]!r} is not known; a call has tool, args, turn, session and context."
        )
    tool = body.get("tool")
    if not isinstance(tool, str) or not tool:
        raise InvalidRequest("Name the tool: {'tool': 'echo', 'args': {…}}.")
    args = body.get("args")
    if args is not None and not isinstance(args, dict):
        raise InvalidRequest("'args' must be an object of names and values.")
    return Asked(
        tool,
        cast("dict[str, Any] | None", args),
        _turn(body.get("turn")),
        read_context(body.get("context")),
        read_session(body.get("session")),
    )


async def run_call(gate: Runtime, caller: Caller, asked: Asked) -> Output:
    """Run a tool by its name, or by the name that a list gave a model for it."""
    tool, args, turn = asked[:3]
    try:
        return await gate.call(tool, args, caller=caller, turn=turn)
    except ToolNotFound:
        # A name that a model's API takes as it is stands for no other.
        if for_model(tool) == tool:
            raise
        names = [spec.name for spec in await gate.discover(caller)]
        meant = from_model(names).get(tool)
        if meant is None or tool in names:
            raise
    return await gate.call(meant, args, caller=caller, turn=turn)


def _turn(given: Any) -> Turn | None:
    if given is None:
        return None
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        group, id_ = fields.get("group"), fields.get("id", "")
        known = fields.keys() <= {"group", "id"}
        if known and isinstance(group, str) and 0 < len(group) <= 256 and isinstance(id_, str):
            return Turn(group=group, id=id_[:256])
    raise InvalidRequest("'turn' must be {'group': TEXT, 'id': TEXT}; the group is required.")
