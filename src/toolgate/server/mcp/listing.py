"""`tools/list`: exactly what the caller may call, written once for each tool and each list."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from toolgate.catalog.snapshot import Snapshot
from toolgate.server.mcp import revision
from toolgate.server.mcp.blocks import is_bare
from toolgate.server.mcp.paging import after_of, cursor_of
from toolgate.server.mcp.promised import held, listed
from toolgate.server.mcp.rpc import Id, Params
from toolgate.spec.export import mcp
from toolgate.spec.names import for_model
from toolgate.spec.tool import ToolSpec

PAGE = 1_000
_MOST_LISTS = 64
_MOST_SHAPES = 100_000
# How long a client may go by what it was told: a list that is a moment old may not be what can be
# called any more. Changes are told to whoever listens.
TTL_MS = 0


class Shape(NamedTuple):
    """A tool as clients see it."""

    raw: bytes
    # The same on the older revision.
    older: bytes
    # Whether results are held against a schema that was listed.
    has_output: bool
    has_older_output: bool
    # Whether some of its arguments have to stand in headers too.
    is_mirrored: bool
    # What results have to be, where a listed schema tells of them.
    fits: Callable[[Any], bool] | None
    # Whether a result is shown as its JSON, and nothing of it as a text or a picture.
    is_bare: bool


class Listing:
    """Lists by the page, as bytes. A list that was asked for before costs a look."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape] = {}
        # By the identity of what the gate gave, which is the same as long as nothing has changed.
        self._pages: OrderedDict[tuple[int, int, bool], tuple[tuple[ToolSpec, ...], bytes]] = (
            OrderedDict()
        )
        self._names: tuple[Snapshot, dict[str, str]] | None = None

    def shape(self, spec: ToolSpec) -> Shape:
        """One tool."""
        found = self._shapes.get(spec.fingerprint)
        if found is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            found = self._shapes[spec.fingerprint] = _shape(spec)
        return found

    def page(
        self, specs: tuple[ToolSpec, ...], params: Params, *, modern: bool
    ) -> tuple[bytes, str | None]:
        """The tools of one page as a JSON list, and the cursor of the next."""
        # By name: what comes or goes meanwhile moves no other tool from one page to the next.
        after = after_of(params.get("cursor"))
        start = bisect_right(specs, after, key=_name) if after else 0
        key = (id(specs), start, modern)
        kept = self._pages.get(key)
        if kept is not None and kept[0] is specs:
            self._pages.move_to_end(key)
            raw = kept[1]
        else:
            some = specs[start : start + PAGE]
            shapes = [self.shape(one) for one in some]
            raw = b"[" + b",".join([one.raw if modern else one.older for one in shapes]) + b"]"
            self._pages[key] = (specs, raw)
            if len(self._pages) > _MOST_LISTS:
                self._pages.popitem(last=False)
        last = start + PAGE - 1
        return raw, cursor_of(specs[last].name) if last + 1 < len(specs) else None

    def meant(self, snapshot: Snapshot, name: str) -> str | None:
        """The tool that a list showed under this name, where that is not its own."""
        if self._names is None or self._names[0] is not snapshot:
            back: dict[str, str] = {}
            for own in snapshot.specs:
                shown = for_model(own)
                if shown != own:
                    # Of two that meet under one name, neither can be meant.
                    back[shown] = "" if shown in back else own
            self._names = (snapshot, back)
        return self._names[1].get(name) or None


def _shape(spec: ToolSpec) -> Shape:
    output, older = listed(spec, modern=True), listed(spec, modern=False)
    has_output = output is not None
    raw = _written(spec, output)
    return Shape(
        raw=raw,
        older=raw if older == output else _written(spec, older),
        has_output=has_output,
        has_older_output=older is not None,
        is_mirrored=b'"x-mcp-header"' in spec.input_schema.raw,
        fits=held(spec) if has_output else None,
        is_bare=not has_output or is_bare(spec),
    )


def _written(spec: ToolSpec, output: dict[str, Any] | None) -> bytes:
    shown = mcp(spec)
    shown.pop("outputSchema", None)
    return orjson.dumps(shown if output is None else shown | {"outputSchema": output})


def answer(
    id_: Id, listing: Listing, specs: tuple[ToolSpec, ...], params: Params, *, modern: bool
) -> bytes:
    """The whole answer. The list goes in as it is: to write it again would cost the most."""
    raw, following = listing.page(specs, params, modern=modern)
    rest: dict[str, Any] = {}
    if following is not None:
        rest["nextCursor"] = following
    if modern:
        rest |= {"resultType": "complete", "ttlMs": TTL_MS, "cacheScope": "private"}
        rest["_meta"] = {revision.SERVER: dict(revision.INFO)}
    tail = orjson.dumps(rest)[1:-1]
    head = b'{"jsonrpc":"2.0","id":' + orjson.dumps(id_) + b',"result":{"tools":'
    return b"".join((head, raw, b"," if tail else b"", tail, b"}}"))


def _name(spec: ToolSpec) -> str:
    return spec.name
