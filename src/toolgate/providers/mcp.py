"""Tools of MCP servers: a call of ours is a call there."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import orjson

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import (
    CallFailed,
    ExecutionFailed,
    ProviderUnavailable,
    ToolError,
    UnsupportedProvider,
)
from toolgate.executor.resilience.deadline import out_of_time
from toolgate.protocol import BLOCKS
from toolgate.spec.document import canonical
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec
from toolgate.text.values import are_too_many
from toolgate.upstreams.claims import disowned
from toolgate.upstreams.failures import BegunAnew
from toolgate.upstreams.member import Member
from toolgate.upstreams.upstream import Json, Upstream

# What another toolgate, or whoever knows the word, does a call once by.
KEY = "toolgate/idempotencyKey"
_REQUESTS: Mapping[str, str] = {"resources": "resources/read", "prompts": "prompts/get"}
_TEXT = frozenset({"type", "text"})
# What of `_meta` is between a server and whoever asked it, and no part of its result.
_BETWEEN = ("io.modelcontextprotocol/", "toolgate/")
_MOST_TOLD = 4_000
# Of what comes with a failure, unless the tool has a limit of its own.
_MOST_GIVEN = 100_000
_UNKNOWN = "It may have taken effect: check before you call it again."
# By it a door knows a result that was kept aside.
NOTE = "read_with"


class SaidError(ExecutionFailed):
    """The server is there, ran the tool and says that it failed: it may have done some of it."""

    is_answer = True


class _Bound(NamedTuple):
    """A spec, read once: every call goes by here."""

    spec: ToolSpec
    server: str
    tool: str
    # What it is asked instead of a tool; empty for a tool.
    method: str
    # The argument that its key goes into, if any.
    argument: str
    # Whether an error of it means that nothing was done.
    is_harmless: bool


class McpProvider:
    """Runs what servers offer. They come and go: `members` is looked at for each call."""

    def __init__(self, members: Mapping[str, Member]) -> None:
        self._members = members
        self._bound: dict[str, _Bound] = {}

    def unusable(self, spec: ToolSpec) -> str | None:
        """Why a tool waits, or that nobody knows its server."""
        config = spec.config.value()
        held = config.get("held")
        if held:
            return str(held)
        bound = _read(spec, config)
        if bound is None:
            return "config names no server and tool; write config: {server: NAME, tool: NAME}"
        if bound.server not in self._members:
            return f"there is no MCP server {bound.server[:60]!r}"
        key = spec.downstream_key
        if key is not None and not key.argument:
            return "its downstream_key names a header; a tool of an MCP server has arguments"
        self._bound[spec.name] = bound
        return None

    def unkeyed(self, spec: ToolSpec) -> str | None:
        """Arguments are a tool's; what is read of a server has none that a key could be."""
        if self._bound[spec.name].method:
            return "it has a downstream_key, but is no tool of its server; leave downstream_key out"
        return None

    async def run(self, call: Call) -> Any:
        """The server's answer as data, or its error."""
        spec = call.grant.spec
        bound = self._bound.get(spec.name)
        if bound is None or bound.spec is not spec:
            bound = _granted(spec)
        member = self._members.get(bound.server)
        if member is None:
            raise ProviderUnavailable(f"The server of {spec.name!r} is gone. Nothing ran.")
        try:
            return await _ran(member, bound, call)
        except BegunAnew:
            # What it has now is compared with what was agreed to before it is called again.
            return await _ran(member, bound, call)


async def _ran(member: Member, bound: _Bound, call: Call) -> Any:
    if not member.is_checked:
        await _check(member, bound.spec)
    if bound.tool in member.held:
        raise UnsupportedProvider(
            f"{bound.spec.name!r} waits for an operator. Nothing ran. Do without it for now."
        )
    seconds = (call.until_ns - clock.monotonic_ns()) / 1e9
    if seconds <= 0:
        raise out_of_time(call)
    try:
        if bound.method:
            return await _requested(member.upstream, bound, call, seconds)
        args, key = call.args, call.downstream_key
        meta = {KEY: key} if key else None
        if key and bound.argument:
            args = {**args, bound.argument: key}
        line = call.asked.line
        result = await member.upstream.call(bound.tool, args, seconds=seconds, line=line, meta=meta)
    except CallFailed as error:
        _advise(bound, error)
        raise
    if result.get("isError") is True:
        raise _failed(bound, result)
    data = data_of(result)
    if type(data) is str:
        # A text alone names nothing.
        return data
    own = disowned(bound.server, result)
    return data if own is result else data_of(own)


async def _check(member: Member, spec: ToolSpec) -> None:
    await member.check()
    if not member.is_checked:
        raise ProviderUnavailable(
            f"The server of {spec.name!r} is away, or does not say what it has. Nothing "
            "ran. Try again in a moment."
        )


async def _requested(upstream: Upstream, bound: _Bound, call: Call, seconds: float) -> Any:
    """What a server has beside its tools."""
    line = call.asked.line
    said = await upstream.request(bound.method, call.args, seconds=seconds, line=line)
    # A door takes this for a note of the house, on an output that it keeps. A server must not
    # write such notes: what it names may be the caller's from elsewhere.
    told = disowned(bound.server, said)
    return {name: one for name, one in told.items() if name != NOTE}


def _advise(bound: _Bound, error: CallFailed) -> None:
    """Say what to do where it is not known whether it happened. Who refused it did nothing."""
    if not isinstance(error, ToolError) and not bound.spec.effect.repeatable:
        error.message = f"{error.message}\n{_UNKNOWN}"


def data_of(result: Mapping[str, Any]) -> Any:
    """A text alone is a text, an object alone an object; anything else stays as it came.

    What a door could not know for a result of MCP says `isError`, as only those do.
    """
    blocks, structured, meta = _blocks(result), result.get("structuredContent"), _meta(result)
    text: str | None = blocks[0]["text"] if len(blocks) == 1 and _is_text(blocks[0]) else None
    if structured is None:
        if text is not None and not meta:
            return text
    elif not blocks or (text is not None and _says(text, structured)):
        return structured
    return _whole(blocks, structured, meta) | ({} if _is_known(blocks) else {"isError": False})


def _whole(blocks: list[Any], structured: Any, meta: Json) -> Json:
    """A result as it came, but for what stands between a server and us."""
    more = {"structuredContent": structured, "_meta": meta or None}
    return {"content": blocks} | {name: one for name, one in more.items() if one is not None}


def _blocks(result: Mapping[str, Any]) -> list[Any]:
    content = result.get("content")
    return cast("list[Any]", content) if type(content) is list else []


def _is_text(block: Any) -> bool:
    """Whether it is a text, and nothing is said of it."""
    if type(block) is not dict:
        return False
    told = cast("Json", block)
    is_text = told.get("type") == "text" and type(told.get("text")) is str
    return is_text and told.keys() <= _TEXT


def _meta(result: Mapping[str, Any]) -> Json:
    """What a server says of its result, and not of itself."""
    said = result.get("_meta")
    if type(said) is not dict:
        return {}
    return {name: one for name, one in cast("Json", said).items() if not name.startswith(_BETWEEN)}


def _is_known(blocks: list[Any]) -> bool:
    """Whether it is plain that these are blocks; or that they are none."""
    kinds = [cast("Json", one).get("type") if type(one) is dict else None for one in blocks]
    if any(type(kind) is not str for kind in kinds):
        return True
    return bool(kinds) and BLOCKS.issuperset(kinds)


def _says(text: str, value: Any) -> bool:
    if are_too_many(text.encode("utf-8", "replace")):
        return False
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    if said != value:
        return False
    # To Python 1, 1.0 and true are one value; nearly always both are in the same order, too.
    return orjson.dumps(said) == orjson.dumps(value) or canonical(said) == canonical(value)


def _failed(bound: _Bound, result: Json) -> ExecutionFailed:
    """What the server says, as a failure. Only who reads, or is known to have done nothing, can be
    believed to have.
    """
    blocks = _blocks(result)
    texts = [str(cast("Json", block).get("text", "")) for block in blocks if type(block) is dict]
    whole = "\n".join(filter(None, texts))
    said = whole[:_MOST_TOLD] or "It failed, and does not say why."
    if bound.is_harmless or bound.spec.effect is Effect.PURE:
        failed: ExecutionFailed = ToolError(said)
    else:
        failed = SaidError(said)
        _advise(bound, failed)
    failed.produced = _given(bound, result, is_said=said == whole)
    return failed


def _given(bound: _Bound, result: Json, *, is_said: bool) -> Json | None:
    """What a server gave with a failure, where that is more than was said of it."""
    blocks, structured, meta = _blocks(result), result.get("structuredContent"), _meta(result)
    if is_said and all(map(_is_text, blocks)) and structured is None and not meta:
        return None
    given = _whole(blocks, structured, meta) | {"isError": True}
    limit = bound.spec.output_limit or _MOST_GIVEN
    return disowned(bound.server, given) if len(orjson.dumps(given)) <= limit else None


def _granted(spec: ToolSpec) -> _Bound:
    """A call runs what it was granted, also when another has taken its place since."""
    config = spec.config.value()
    bound = None if config.get("held") else _read(spec, config)
    if bound is None:
        raise UnsupportedProvider(f"{spec.name!r} cannot run any more. Nothing ran.")
    return bound


def _read(spec: ToolSpec, config: Mapping[str, Any]) -> _Bound | None:
    server, tool, kind = config.get("server"), config.get("tool"), config.get("kind")
    method = _REQUESTS.get(kind, "") if isinstance(kind, str) else ""
    if not isinstance(server, str) or not (method or (isinstance(tool, str) and tool)):
        return None
    key = spec.downstream_key
    return _Bound(
        spec,
        server,
        "" if method else str(tool),
        method,
        "" if key is None else key.argument,
        config.get("on_error") == "not_done",
    )
