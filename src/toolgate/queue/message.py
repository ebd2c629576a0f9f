"""What goes through the queue, as JSON with a version: a call on its way, and how it ended.

Other systems may write the first and read the second; `docs/reference/queue.md` is their contract.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from toolgate.asked import Asked, Planned
from toolgate.call import Call, Output, Turn
from toolgate.caller import Caller
from toolgate.errors import InvalidRequest
from toolgate.spec.effect import CallerKind

VERSION = 1
# A broker takes a megabyte at the most, unless somebody has told it otherwise.
MOST_BYTES = 900_000
_MS = 1_000_000
_MOST_SHOWN = 200
# What a trace is carried by, and how long each may be.
_TRACED = {"traceparent": 128, "tracestate": 512}

# Milliseconds that are still a number for a store once they are nanoseconds.
Moment = Annotated[int, msgspec.Meta(ge=0, le=9_000_000_000_000)]
Index = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]


class UnreadableError(ValueError):
    """A message that no attempt can make sense of."""


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The turn that a call belongs to. What it can be asked has stayed where it began."""

    group: str
    id: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call on its way to a worker. Times are milliseconds since 1970."""

    version: int
    id: str
    tool: str
    args: dict[str, Any]
    caller: Caller
    turn: Place | None = None
    # The caller's own idempotency key.
    key: str = ""
    kind: CallerKind = CallerKind.DIRECT
    chain: str = ""
    chain_index: Index = 0
    planned: Planned | None = None
    again_of: str = ""
    # Whether a node has counted it to its rate limits.
    counted: bool = False
    # Calls of one order run one after the other.
    order: str = ""
    queued_ms: Moment = 0
    expires_ms: Moment = 0
    # When whoever waits for it is over: it does not run on after that. 0: as long as its tool may.
    until_ms: Moment = 0
    # The trace that it belongs to, by the names of its headers.
    trace: dict[str, str] = {}

    @property
    def turn_given(self) -> Turn | None:
        """The turn, which nobody listens to any more."""
        return None if self.turn is None else Turn(group=self.turn.group, id=self.turn.id)

    @property
    def asked(self) -> Asked:
        """How it was asked for; it runs under the id that it was queued by."""
        return Asked(
            key=self.key,
            kind=self.kind,
            chain=self.chain,
            chain_index=self.chain_index,
            planned=self.planned,
            again_of=self.again_of,
            delivered=self.id,
            anew=self.counted,
        )


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a call from the queue ended. `output` is what every door answers with.

    `cut`: what it holds is too large for a message; its caller finds it by its id.
    """

    version: int
    id: str
    tool: str
    tenant: str
    output: Output
    ended_ms: Moment
    cut: bool = False


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A call that no worker could run, or what was not even one: then it has no tool or tenant.

    `message` is what was to be run, in base64; a part of it where it is very long.
    """

    version: int
    id: str
    tool: str
    tenant: str
    why: str
    attempts: int
    died_ms: int
    message: bytes


_encode = msgspec.json.Encoder().encode
_request = msgspec.json.Decoder(Request).decode
_result = msgspec.json.Decoder(Result).decode
_output = msgspec.json.Decoder(Output).decode


def request_of(call: Call, *, expires_ns: int, trace: Mapping[str, str]) -> Request:
    """The call as it is queued. Whoever runs it comes by no token: it was accepted with one."""
    grant, asked, turn = call.grant, call.asked, call.turn
    return Request(
        version=VERSION,
        id=call.id,
        tool=grant.spec.name,
        args=call.args,
        caller=msgspec.structs.replace(grant.caller, until_ns=0),
        turn=None if turn is None else Place(group=turn.group, id=turn.id),
        key=asked.key,
        kind=asked.kind,
        chain=asked.chain,
        chain_index=asked.chain_index,
        planned=asked.planned,
        again_of=asked.again_of,
        counted=True,
        order=order_of(call),
        queued_ms=call.started_ns // _MS,
        expires_ms=expires_ns // _MS,
        until_ms=call.parent_ns // _MS,
        trace=carried(trace),
    )


def carried(trace: Mapping[str, str]) -> dict[str, str]:
    """Of a trace what goes on with a call: what others say may hold anything, at any length."""
    return {
        name: trace[name] for name, most in _TRACED.items() if 0 < len(trace.get(name, "")) <= most
    }


def order_of(call: Call) -> str:
    """Which calls it must not overtake: by the argument that its tool names, or by its turn."""
    spec, tenant = call.grant.spec, call.grant.caller.tenant
    if spec.order_by:
        value = call.args.get(spec.order_by)
        if value is None:
            return ""
        return f"{tenant}/{spec.name}/{msgspec.json.encode(value, order='sorted').decode()[:256]}"
    return "" if call.turn is None else f"{tenant}/turn/{call.turn.group}"


def written(message: Request | Result | Letter) -> bytes:
    """As it goes over the wire."""
    try:
        raw = _encode(message)
    except UnicodeEncodeError:
        raise InvalidRequest("The call holds half a character, and cannot be queued.") from None
    if len(raw) > MOST_BYTES:
        raise InvalidRequest(
            f"A call with {len(raw):,} bytes of arguments is too large to be queued; "
            f"{MOST_BYTES:,} are the most. Nothing ran: send less, or a reference to it."
        )
    return raw


def read_request(raw: bytes) -> Request:
    """A call from the wire; `UnreadableError` says what is wrong, without what it holds."""
    if len(raw) > MOST_BYTES:
        raise UnreadableError(f"it has {len(raw):,} bytes; {MOST_BYTES:,} are the most")
    try:
        version = msgspec.json.decode(raw, type=_Versioned).version
        if version != VERSION:
            raise UnreadableError(f"it has the version {version}; this worker reads {VERSION}")
        return _request(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, InvalidRequest) as error:
        raise UnreadableError(str(error)[:_MOST_SHOWN]) from None


def read_result(raw: bytes) -> Result:
    """How a call ended, from the wire."""
    try:
        return _result(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)[:_MOST_SHOWN]) from None


def output_text(output: Output) -> bytes:
    """An output as it is kept until somebody asks for it."""
    return _encode(output)


def read_output(raw: bytes | str) -> Output:
    """An output that was kept."""
    return _output(raw)


class _Versioned(msgspec.Struct):
    version: int
