"""Canvases that are kept: those of one persona, or of one agent, in a tenant."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.shelf import Place, Shelf, Thing
from toolgate.tools.canvas.canvas import MOST_EDGES, MOST_NODES, Canvas, Text
from toolgate.tools.meaning.owner import owner_of

KIND = "canvas"
MOST = 100
_ATTEMPTS = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,79}")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A canvas, with what is needed to go on with it.

    `derived` are texts of nodes as they were made here, so that one that a person has edited is
    known; `removed` are ids that a person has taken away, and that do not come back.
    """

    canvas: Canvas = Canvas()
    derived: dict[str, str] = {}
    removed: frozenset[str] = frozenset()
    graph_type: str = ""
    path: str = ""


class Hung(NamedTuple):
    """One of a gallery, under its name."""

    name: str
    kept: Kept
    updated_ns: int


class Gallery:
    """Of one owner."""

    def __init__(self, shelf: Shelf, caller: Caller) -> None:
        self._shelf = shelf
        self._place = Place(caller.tenant, KIND, owner_of(caller))

    async def all(self) -> Sequence[Hung]:
        """By name."""
        return [
            Hung(thing.key, msgspec.convert(thing.body, Kept), thing.updated_ns)
            for thing in await self._shelf.page(self._place, most=2 * MOST)
        ]

    async def at(self, path: str) -> str:
        """The name of the one that was last written there, if any was."""
        there = [hung for hung in await self.all() if hung.kept.path == path]
        return max(there, key=lambda hung: hung.updated_ns).name if there else ""

    async def change(self, name: str, by: Callable[[Kept], Kept]) -> tuple[Kept | None, Kept]:
        """As it was, and as it is now; a new one begins empty."""
        for _ in range(_ATTEMPTS):
            found = await self._shelf.get(self._place, name)
            before = None if found is None else msgspec.convert(found.body, Kept)
            if before is None and await self._shelf.count(self._place) >= MOST:
                raise ToolError(
                    f"There are {MOST} canvases, and no room for more. Take the name of one that "
                    "is there: list_canvases shows them."
                )
            after = by(before or Kept())
            body = msgspec.to_builtins(after)
            revision = 0 if found is None else found.revision
            if await self._shelf.change(self._place, Thing(key=name, body=body, revision=revision)):
                return before, after
        raise ToolError("Others change this canvas again and again. Try again.", retryable=True)


def check_name(name: str) -> str:
    """A canvas is a file too."""
    if not _NAME.fullmatch(name) or name.endswith((".", " ")):
        raise ToolError(
            "A canvas is named by up to 80 letters, digits, spaces, dots, - and _, such as "
            "'release plan'."
        )
    return name


def merged(kept: Kept, fresh: Canvas) -> Kept:
    """A canvas with what is new. What people have moved, edited or removed stays so."""
    texts = {node.id: node.text for node in fresh.nodes if isinstance(node, Text)}
    nodes = {node.id: node for node in kept.canvas.nodes}
    for node in fresh.nodes:
        old = nodes.get(node.id)
        if old is None and node.id not in kept.removed and len(nodes) < MOST_NODES:
            nodes[node.id] = node
        elif (
            isinstance(old, Text)
            and isinstance(node, Text)
            and old.text == kept.derived.get(node.id)
        ):
            nodes[node.id] = msgspec.structs.replace(old, text=node.text, color=node.color)
    edges = {edge.id: edge for edge in kept.canvas.edges}
    for edge in fresh.edges:
        ends = {edge.from_node, edge.to_node}
        is_wanted = edge.id not in kept.removed and ends <= nodes.keys()
        if is_wanted and len(edges) < MOST_EDGES:
            edges.setdefault(edge.id, edge)
    return msgspec.structs.replace(
        kept,
        canvas=Canvas(tuple(nodes.values()), tuple(edges.values())),
        derived={**kept.derived, **texts},
    )


def edited(kept: Kept, after: Canvas) -> Kept:
    """A canvas as a person has left it; what is gone from it stays away."""
    before = {one.id for one in (*kept.canvas.nodes, *kept.canvas.edges)}
    now = {one.id for one in (*after.nodes, *after.edges)}
    return msgspec.structs.replace(
        kept, canvas=after, removed=frozenset((kept.removed | before) - now)
    )
