"""`POST /v1/call`: what the wire says becomes one call."""

import contextlib
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import msgspec
import orjson

from toolgate.call import Output, Turn
from toolgate.caller import NO_CONTEXT, Caller, Context
from toolgate.errors import InvalidRequest, ToolgateError, ToolNotFound
from toolgate.executor.bare import bare
from toolgate.executor.recording.claim import check_wait
from toolgate.identity import printable
from toolgate.runtime import Runtime
from toolgate.server.auth import stands
from toolgate.server.context import read_context, read_session
from toolgate.server.hangup import listening
from toolgate.server.live import Line, Live
from toolgate.server.problems import problem
from toolgate.server.reply import EVENTS, PROBLEM, Reply, Stream
from toolgate.server.request import Header, Request
from toolgate.spec.names import for_model, from_model

_KNOWN = frozenset({"tool", "args", "turn", "session", "context", "idempotency_key", "wait_s"})
_HEADER = b"idempotency-key"
# What a request can say about the trace that it belongs to.
_TRACE = (b"traceparent", b"tracestate")


class Asked(NamedTuple):
    """One call, as the wire says it."""

    tool: str
    args: dict[str, Any] | None
    turn: Turn | None
    context: Context
    session: str
    key: str | None
    wait_s: float | None


async def call(request: Request) -> Reply | Stream:
    """`POST /v1/call` `{tool, args, turn, session, context, idempotency_key, wait_s}`."""
    asked = read_call(await request.body(), request.headers)
    gate, caller = request.gate, caller_in(request.caller, asked)
    with _continued(gate, request.headers):
        if any(name == b"accept" and EVENTS in value for name, value in request.headers):
            return await _live(request, caller, asked)
        if asked.wait_s:
            async with listening(request.receive):
                output = await run_call(gate, caller, asked)
        else:
            output = await run_call(gate, caller, asked)
    return Reply(200, shown(gate, output))


async def _live(request: Request, caller: Caller, asked: Asked) -> Reply | Stream:
    """The same, told of while it runs."""
    gate, line = request.gate, Line()

    def told(error: BaseException) -> Reply:
        is_ours = isinstance(error, ToolgateError)
        known = error if is_ours else ToolgateError("Something went wrong here; it is in the log.")
        return Reply(*problem(known, to_admin=request.is_admin), PROBLEM)

    run = run_call(gate, caller, asked, line)
    return await Live(
        run,
        line,
        ended=lambda output: shown(gate, output),
        told=told,
        stands=lambda: stands(request.key, gate.tenancy.world),
    ).begun()


def caller_in(caller: Caller, asked: Asked) -> Caller:
    """The caller, in the task that the call names."""
    if asked.context is NO_CONTEXT and not asked.session:
        return caller
    return msgspec.structs.replace(caller, context=asked.context, session=asked.session)


def shown(gate: Runtime, output: Output) -> bytes:
    """An Output as this house tells it."""
    if not gate.features.structured_tool_output:
        return orjson.dumps(bare(output))
    return orjson.dumps(output.to_machine())


def read_call(body: dict[str, Any], headers: Iterable[Header] = ()) -> Asked:
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


async def run_call(gate: Runtime, caller: Caller, asked: Asked, line: Line | None = None) -> Output:
    """Run a tool by its name, or by the name that a list gave a model for it."""
    tool, args, turn = asked[:3]
    key, wait_s = asked.key, asked.wait_s
    on_piece = None if line is None else line.piece
    try:
        return await gate.call(
            tool,
            args,
            caller=caller,
            turn=turn,
            idempotency_key=key,
            wait_s=wait_s,
            line=line,
            on_piece=on_piece,
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
        meant,
        args,
        caller=caller,
        turn=turn,
        idempotency_key=key,
        wait_s=wait_s,
        line=line,
        on_piece=on_piece,
    )


def _continued(gate: Runtime, headers: Iterable[Header]) -> contextlib.AbstractContextManager[None]:
    """Within the trace that the request came with, where somebody traces."""
    if gate.watch.spans is None:
        return contextlib.nullcontext()
    return gate.watch.spans.continued(
        {name.decode(): value.decode("latin-1") for name, value in headers if name in _TRACE}
    )


def no_key(headers: Iterable[Header]) -> None:
    """Refuse a key for several calls at once: it would stand for none of them."""
    if any(name == _HEADER for name, _ in headers):
        raise InvalidRequest(
            "'Idempotency-Key' is for one call, at /v1/call, and there may be several here. "
            "Nothing ran: send a 'turn', in which each call runs once, or a key in each call."
        )


def _key(body: dict[str, Any], headers: Iterable[Header]) -> str | None:
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
            printable("turn", group=group, id=id_)
            return Turn(group=group, id=id_[:256])
    raise InvalidRequest("'turn' must be {'group': TEXT, 'id': TEXT}; the group is required.")
