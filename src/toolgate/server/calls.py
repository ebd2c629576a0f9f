"""`POST /v1/call`: what the wire says becomes one call."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from toolgate.call import Caller, Context, Output, Turn
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.executor.recording.claim import check_wait
from toolgate.runtime import Runtime
from toolgate.server.context import read_context, read_session
from toolgate.spec.names import for_model, from_model

_KNOWN = frozenset({"tool", "args", "turn", "session", "context", "idempotency_key", "wait_s"})
_HEADER = b"idempotency-key"


class Asked(NamedTuple):
    """One call, as the wire says it."""

    tool: str
    args: dict[str, Any] | None
    turn: Turn | None
    context: Context
    session: str
    key: str | None
    wait_s: float | None


def read_call(body: dict[str, Any], headers: Iterable[tuple[bytes, bytes]] = ()) -> Asked:
    """What is to be called, by whom and how; or `InvalidRequest` that says what to send.

    The idempotency key can also stand in the header `Idempotency-Key`.
    """
    for field in body.keys() - _KNOWN:
        raise InvalidRequest(
            f"{field[:60]!r} is not known; a call has tool, args, turn, session, context, "
            "idempotency_key and wait_s."
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
        read_turn(body.get("turn")),
        read_context(body.get("context")),
        read_session(body.get("session")),
        _key(body, headers),
        None if body.get("wait_s") is None else check_wait(body["wait_s"]),
    )


async def run_call(gate: Runtime, caller: Caller, asked: Asked) -> Output:
    """Run a tool by its name, or by the name that a list gave a model for it."""
    tool, args, turn = asked[:3]
    key, wait_s = asked.key, asked.wait_s
    try:
        return await gate.call(
            tool, args, caller=caller, turn=turn, idempotency_key=key, wait_s=wait_s
        )
    except ToolNotFound:
        # A name that a model's API takes as it is stands for no other.
        if for_model(tool) == tool:
            raise
        names = [spec.name for spec in await gate.discover(caller)]
        meant = from_model(names).get(tool)
        if meant is None or tool in names:
            raise
    return await gate.call(
        meant, args, caller=caller, turn=turn, idempotency_key=key, wait_s=wait_s
    )


def no_key(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a key for several calls at once: it would stand for none of them."""
    if any(name == _HEADER for name, _ in headers):
        raise InvalidRequest(
            "'Idempotency-Key' is for one call, at /v1/call, and there may be several here. "
            "Nothing ran: send a 'turn', in which each call runs once, or a key in each call."
        )


def _key(body: dict[str, Any], headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The one that was sent; the runtime checks how it looks."""
    sent = {value.decode("latin-1") for name, value in headers if name == _HEADER}
    if "idempotency_key" in body:
        key = body["idempotency_key"]
        if type(key) is not str:
            raise InvalidRequest("'idempotency_key' is a text of 1 to 255 visible characters.")
        sent.add(key)
    if len(sent) > 1:
        raise InvalidRequest(
            "Two different idempotency keys were sent, and nobody can say which is meant. "
            "Nothing ran: send one."
        )
    return next(iter(sent), None)


def read_turn(given: Any) -> Turn | None:
    """`{group, id}`, or `InvalidRequest`."""
    if given is None:
        return None
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        group, id_ = fields.get("group"), fields.get("id", "")
        known = fields.keys() <= {"group", "id"}
        if known and isinstance(group, str) and 0 < len(group) <= 256 and isinstance(id_, str):
            return Turn(group=group, id=id_[:256])
    raise InvalidRequest("'turn' must be {'group': TEXT, 'id': TEXT}; the group is required.")
