"""An Output as the result of `tools/call`."""

import logging
from collections.abc import Callable
from typing import Any, cast

import orjson

from toolgate.call import Output, Turn
from toolgate.errors import ApprovalPending, InvalidOutput, ToolgateError
from toolgate.protocol import BLOCKS
from toolgate.server.mcp import revision
from toolgate.server.mcp.blocks import blocks
from toolgate.server.mcp.label import UNTRUSTED, disclaimed
from toolgate.server.mcp.promised import RETOLD, held, is_aside
from toolgate.server.mcp.rpc import Id
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec
from toolgate.upstreams.claims import disowned

log = logging.getLogger("toolgate.server")
CALL_ID = "toolgate/callId"
STATUS = "toolgate/status"
ERROR = "toolgate/error"
KEY = "toolgate/idempotencyKey"
# Where a call is read by its id.
CALLS = "toolgate://calls/"
_ASIDE = (
    "The tool ran, and this is the head of its result. The rest is read by the reference, if there "
    "is one: do not call the tool again for it."
)
_MARKED = frozenset({"content", "structuredContent"})
# What is said of a result beside it: a server's word, which its provider has looked through.
_MARKED_BY_SERVER = _MARKED | {"isError", "_meta"}
_SERVER = {revision.SERVER: dict(revision.INFO)}
_HEAD = (
    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":%b}],"isError":false%b,'
    b'"resultType":"complete","_meta":'
    + orjson.dumps(_SERVER)[:-1].replace(b"%", b"%%")
    + b',"toolgate/callId":"%b","toolgate/status":"success"'
)
_PARTS = _HEAD + b"}}}"
_UNTRUSTED_PARTS = _HEAD + b',"%b":true}}}' % UNTRUSTED.encode()


def finished(
    output: Output, spec: ToolSpec | None, *, modern: bool, of_server: bool = False
) -> dict[str, Any]:
    """The whole result. `of_server`: one of MCP made it."""
    meta: dict[str, Any] = {CALL_ID: output.call_id, STATUS: output.status}
    if output.cached:
        meta["toolgate/cached"] = True
    if output.untrusted:
        meta[UNTRUSTED] = True
    if output.error is not None:
        return _failed(output, meta, modern=modern, of_server=of_server)
    data: Any = output.data
    result: dict[str, Any]
    if is_content(data, of_server=of_server):
        if output.untrusted:
            data = not_ours(output)
        result, meta = {"isError": False, **data}, _beside(data) | meta
        if spec is not None:
            # A list that tells of a schema promises something that fits it.
            result.setdefault("structuredContent", data)
        if not modern and type(result.get("structuredContent")) is not dict:
            result.pop("structuredContent", None)
    else:
        # Written once, for both.
        raw = b"" if type(data) is str else orjson.dumps(data)
        text = data if type(data) is str else raw.decode()
        shown = blocks(spec, data) or [{"type": "text", "text": text}]
        result = {"content": shown, "isError": False}
        if spec is not None:
            result["structuredContent"] = data
        # The older revision knows objects only; of a text, or of nothing, there is no more to say.
        elif type(data) is dict or (modern and raw and data is not None):
            result["structuredContent"] = orjson.Fragment(raw)
    if spec is not None:
        _held(spec, result, output, meta)
    return stamped(result, meta, modern=modern)


def written(
    id_: Id, output: Output, *, has_output: bool, fits: Callable[[Any], bool] | None
) -> bytes | None:
    """The whole answer of a success on the newer revision, as `finished` would give it; `None`
    where that has to look closer. Of a tool whose results are shown as their JSON.
    """
    data: Any = output.data
    if type(data) is str:
        if has_output:
            return None
        text, structured = orjson.dumps(data), b""
    elif type(data) is dict and "content" not in data:
        if fits is not None and not fits(data):
            return None
        raw = orjson.dumps(data)
        text, structured = orjson.dumps(raw.decode()), b',"structuredContent":' + raw
    else:
        return None
    parts = _UNTRUSTED_PARTS if output.untrusted else _PARTS
    return parts % (orjson.dumps(id_), text, structured, output.call_id.encode())


def refused(error: ToolgateError, *, modern: bool) -> dict[str, Any]:
    """What was not begun, in words for the model."""
    told = {"code": error.code, "retryable": error.retryable}
    meta: dict[str, Any] = {STATUS: "refused", ERROR: told}
    text = {"type": "text", "text": f"{error.code}: {error.message}"}
    return stamped({"content": [text], "isError": True}, meta, modern=modern)


def queued(
    output: Output, *, key: str | None, turn: Turn | None, modern: bool, structured: bool = True
) -> dict[str, Any]:
    """A call that was taken and has not run yet, which is no error, and where its result will be.

    `key`, `turn`: by which the same call, sent again, is given that result and not done twice.
    `structured`: not where a list promised what no such answer can be.
    """
    uri = CALLS + output.call_id
    meta: dict[str, Any] = {CALL_ID: output.call_id, STATUS: output.status}
    text = (
        f"The call is queued as {output.call_id} and will run; it is not done yet. Do not call the "
        f"tool anew for it: its result will be at the resource {uri}"
    )
    if key is not None:
        meta[KEY] = key
        text += f", and is the answer to the same call with {KEY!r}: {key!r} in its '_meta'"
    elif turn is not None:
        text += ", and is the answer to the same call in this turn"
    result: dict[str, Any] = {"content": [_said(f"{text}.")], "isError": not structured}
    if structured:
        told = {"status": output.status, "call_id": output.call_id, "resource": uri}
        result["structuredContent"] = told
    return stamped(result, meta, modern=modern)


def stamped(
    result: dict[str, Any], meta: dict[str, Any] | None = None, *, modern: bool
) -> dict[str, Any]:
    """With what the newer revision wants to know of every result."""
    if not modern:
        return result if meta is None else result | {"_meta": meta}
    result["resultType"] = "complete"
    result["_meta"] = _SERVER if meta is None else _SERVER | meta
    return result


def is_content(data: Any, *, of_server: bool = False) -> bool:
    """Whether a tool speaks in MCP's own blocks: text, images, sounds, resources."""
    marked = _MARKED_BY_SERVER if of_server else _MARKED
    if type(data) is not dict or not data.keys() <= marked:
        return False
    blocks = cast("dict[str, Any]", data).get("content")
    if type(blocks) is not list:
        return False
    kinds: list[Any] = [
        cast("dict[str, Any]", one).get("type") if type(one) is dict else None
        for one in cast("list[Any]", blocks)
    ]
    if not all(type(kind) is str for kind in kinds):
        return False
    # Only a server's says `isError`: also one of no block, or of kinds that nobody knows here.
    return "isError" in data or (bool(kinds) and BLOCKS.issuperset(kinds))


def _beside(data: dict[str, Any]) -> dict[str, Any]:
    """What whoever made a result says of it."""
    meta: object = data.get("_meta")
    return cast("dict[str, Any]", meta) if type(meta) is dict else {}


def not_ours(output: Output) -> Any:
    """Blocks that others wrote, without anything in our name: neither in `_meta` nor by a URI."""
    return disowned(output.call_id, disclaimed(output.data), kind="call")


def _failed(
    output: Output, meta: dict[str, Any], *, modern: bool, of_server: bool
) -> dict[str, Any]:
    error = output.error
    assert error is not None  # noqa: S101  its caller has looked
    meta[ERROR] = {"code": error.code, "retryable": error.retryable}
    text = output.to_human()
    if error.code == ApprovalPending.code:
        text += _where(error.details)
        meta[ERROR]["details"] = error.details
    said = {"type": "text", "text": text}
    result: dict[str, Any] = {"content": [said], "isError": True}
    if is_content(output.data, of_server=of_server):
        given = not_ours(output) if output.untrusted else output.data
        result = {**given, "content": [said, *given["content"]], "isError": True}
        meta = _beside(given) | meta
    return stamped(result, meta, modern=modern)


def _where(details: dict[str, Any]) -> str:
    """How a person agrees who is not at this client."""
    ways = cast("dict[str, str]", details.get("where", {}))
    return f" To agree: {', or '.join(ways.values())}." if ways else ""


def _held(spec: ToolSpec, result: dict[str, Any], output: Output, meta: dict[str, Any]) -> None:
    """Against what the list says of it: a client refuses anything else."""
    structured = result.get("structuredContent")
    fits = held(spec)
    if fits is None or fits(structured):
        return
    if is_aside(structured):
        result["content"] = [*result["content"], _said(_ASIDE)]
        if spec.provider in RETOLD:
            # Its own server's schema knows no references, and a client that checks would raise.
            result.pop("structuredContent", None)
            result["isError"] = True
            meta[ERROR] = {"code": InvalidOutput.code, "retryable": False}
        return
    log.warning(
        "the result of call %s does not fit the output_schema of %s", output.call_id, spec.name
    )
    # Without it a client that checks would raise, and nobody would hear that the tool has run.
    result.pop("structuredContent", None)
    result["isError"] = True
    meta[ERROR] = {"code": InvalidOutput.code, "retryable": False}
    again = "" if spec.effect is Effect.PURE else " Its effect has happened: do not call it again."
    ran = f"{InvalidOutput.code}: {spec.name!r} ran, but its result does not fit its output_schema."
    result["content"] = [_said(ran + again + " The result follows."), *result["content"]]


def _said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
