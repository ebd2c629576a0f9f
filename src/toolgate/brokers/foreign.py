"""Calls that other systems send: read, held against who signed them, and made ours."""

import re

import msgspec

from toolgate import clock
from toolgate.brokers.seal import Headers, Seal, UnsignedError
from toolgate.errors import InvalidRequest
from toolgate.executor.recording.claim import check_key
from toolgate.ledger.history import owner_of
from toolgate.queue.message import (
    MOST_BYTES,
    Request,
    UnreadableError,
    carried,
    read_request,
    written,
)
from toolgate.queue.queue import Item
from toolgate.spec.effect import CallerKind

_ID = re.compile(r"[A-Za-z0-9_-]{8,100}")
_MS = 1_000_000
# So begin the ids of the house's own calls, also of those that no queue knows of.
_OURS = "call_"
_MOST_ORDER = 256
_MOST_NAME = 256
# To whoever sent it, it must not look as if it had run.
TAKEN = "its id is that of a call of another tenant; send it under an id of its own"


class _Named(msgspec.Struct):
    id: str


_named = msgspec.json.Decoder(_Named).decode


def call_id(value: bytes | None) -> str:
    """Which call a message is about; `UnreadableError` where it cannot be one."""
    if not value:
        raise UnreadableError("it is empty")
    if len(value) > MOST_BYTES:
        raise UnreadableError(f"it has {len(value):,} bytes; {MOST_BYTES:,} are the most")
    try:
        found = _named(value).id
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise UnreadableError("it is no JSON object with an id") from None
    if not _ID.fullmatch(found):
        raise UnreadableError("its id is not 8 to 100 letters, digits, _ and -")
    return found


def signed(value: bytes, headers: Headers, seal: Seal) -> Request:
    """What a system says that may say it; `UnreadableError` where nobody does who may."""
    try:
        signer = seal.signer(headers, value)
    except UnsignedError as error:
        raise UnreadableError(str(error)) from None
    request = read_request(value)
    if not signer.speaks_for(request.caller.tenant):
        raise UnreadableError("its producer does not speak for its tenant")
    return request


def adopted(value: bytes, headers: Headers, seal: Seal, *, expires: float) -> Item:
    """A call of another system as it is queued; what it cannot say about itself is left out."""
    request = signed(value, headers, seal)
    caller = request.caller
    if request.id.startswith(_OURS):
        raise UnreadableError(
            f"its id begins with {_OURS}, as those of the house do; send it under an id of its own"
        )
    if len(request.tool) > _MOST_NAME:
        raise UnreadableError(f"its tool has a name of more than {_MOST_NAME} characters")
    latest_ms = clock.unix_ns() // _MS + round(expires * 1_000)
    expires_ms = min(request.expires_ms or latest_ms, request.until_ms or latest_ms, latest_ms)
    order = f"{caller.tenant}/sent/{request.order[:_MOST_ORDER]}" if request.order else ""
    ours = msgspec.structs.replace(
        request,
        caller=msgspec.structs.replace(caller, key="", until_ns=0, kind=CallerKind.DIRECT),
        kind=CallerKind.DIRECT,
        chain="",
        chain_index=0,
        again_of="",
        counted=False,
        order=order,
        expires_ms=expires_ms,
        trace=carried(request.trace or _trace(headers)),
    )
    try:
        if request.key:
            check_key(request.key)
        message = written(ours)
    except InvalidRequest as error:
        raise UnreadableError(str(error)) from None
    return Item(
        call_id=request.id,
        tenant=caller.tenant,
        tool=request.tool,
        agent=caller.agent,
        user=caller.user,
        scope=owner_of(caller),
        order=order,
        message=message,
        expires_ns=expires_ms * _MS,
    )


def _trace(headers: Headers) -> dict[str, str]:
    """As others carry it: beside the message, in the words of any HTTP request."""
    return {name: (value or b"").decode("latin-1") for name, value in headers}
