"""Requests as bytes. What is the same in all of them is written once."""

from collections.abc import Mapping
from typing import Any

import orjson

from toolgate import protocol
from toolgate.asked import Line
from toolgate.upstreams import revision
from toolgate.upstreams.message import Json

_MOST_KEPT = 20_000
_LOG_LEVEL = protocol.LOG_LEVEL.encode()


class Phrases:
    """What is said to one server, in its revision."""

    def __init__(self, *, is_modern: bool, asks: frozenset[str]) -> None:
        self._is_modern = is_modern
        self._asks = tuple(name for name in revision.ASKS if name in asks)
        self._plain = b"" if not is_modern else _meta(())
        # By what the caller of a request can be asked.
        self._asking: dict[tuple[str, ...], bytes] = {}
        self._calls: dict[str, bytes] = {}

    def call(
        self, id_: int, tool: str, args: Json, line: Line | None, meta: Mapping[str, Any] | None
    ) -> bytes:
        """A `tools/call`."""
        middle = self._calls.get(tool)
        if middle is None:
            if len(self._calls) >= _MOST_KEPT:
                self._calls.clear()
            named = b',"method":"tools/call","params":{"name":%b,"arguments":'
            middle = self._calls[tool] = named % orjson.dumps(tool)
        ending = self._ending(id_, line, meta)
        return b'{"jsonrpc":"2.0","id":%d%b%b%b' % (id_, middle, orjson.dumps(args), ending)

    def other(
        self,
        id_: int,
        method: str,
        params: Json,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Any request; what `params` says in `_meta` is a caller's."""
        given = params.get("_meta")
        if given is not None:
            meta = {**given, **(meta or {})} if type(given) is dict else meta
            params = {name: one for name, one in params.items() if name != "_meta"}
        ending = self._ending(id_, line, meta)
        if not params:
            ending = ending[1:] if ending.startswith(b",") else ending
        head = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":' % (id_, orjson.dumps(method))
        return b"%b%b%b" % (head, orjson.dumps(params)[:-1], ending)

    def _ending(self, id_: int, line: Line | None, meta: Mapping[str, Any] | None) -> bytes:
        """`_meta`, and what closes the message."""
        if line is None:
            if meta is None:
                plain = self._plain
                return b',"_meta":{%b}}}' % plain if plain else b"}}"
            parts = [self._plain] if self._plain else []
        else:
            parts = [b'"progressToken":%d' % id_] if line.wants_progress else []
            if self._is_modern:
                parts.append(self._said(line) if self._asks else self._plain)
                if line.log_level:
                    parts.append(b'"%b":"%b"' % (_LOG_LEVEL, line.log_level.encode()))
        if meta:
            more = {name: one for name, one in meta.items() if name not in revision.OURS}
            if more:
                parts.append(orjson.dumps(more)[1:-1])
        return b',"_meta":{%b}}}' % b",".join(parts) if parts else b"}}"

    def _said(self, line: Line) -> bytes:
        """What every request says, with what this caller can be asked."""
        can = line.capabilities
        asked = tuple(name for name in self._asks if name in can)
        found = self._asking.get(asked)
        if found is None:
            found = self._asking[asked] = _meta(asked)
        return found


def _meta(asks: tuple[str, ...]) -> bytes:
    said = {
        protocol.VERSION: protocol.MODERN,
        protocol.CAPABILITIES: revision.capabilities(asks),
        protocol.CLIENT: dict(protocol.INFO),
    }
    return orjson.dumps(said)[1:-1]
