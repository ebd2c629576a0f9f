"""What a session has said since it began, kept where every node finds it.

Most sessions never say any of this, and leave nothing behind.
"""

from collections.abc import Callable

import msgspec

from toolgate import clock
from toolgate.server.mcp.passport import LIFE_NS
from toolgate.server.mcp.post import ALL, Post
from toolgate.server.mcp.sessions import Session
from toolgate.shelf import Place, Shelf, Thing

KIND = "mcp.sessions"
# The kind of letter that says so.
SAID = "session"
# As late as this a node sees what was said at another.
FRESH_NS = 1_000_000_000
_TRIES = 20


class Standing(msgspec.Struct, frozen=True):
    """How a session stands."""

    log_level: str = ""
    subscribed: frozenset[str] = frozenset()
    is_over: bool = False


class Standings:
    """Those of all sessions."""

    def __init__(self, post: Post) -> None:
        self._post = post
        post.sweeps(KIND, LIFE_NS)

    async def look(self, session: Session, *, anew: bool = False) -> bool:
        """Bring a session up to date; whether it goes on."""
        shelf, now_ns = self._post.shelf, clock.monotonic_ns()
        if shelf is None or (not anew and now_ns - session.looked_ns < FRESH_NS):
            return True
        session.looked_ns = now_ns
        _, found = await _read(shelf, session)
        if found is not None:
            session.log_level = found.log_level
            session.subscribed = set(found.subscribed)
        return found is None or not found.is_over

    async def say(self, session: Session, change: Callable[[Standing], Standing]) -> None:
        """For every node; that at which the session listens is told by a letter."""
        shelf = self._post.shelf
        if shelf is None:
            return
        place, key = _at(session)
        for _ in range(_TRIES):
            thing, before = await _read(shelf, session)
            after = change(before or Standing())
            if after == before:
                return
            body = msgspec.to_builtins(after)
            if await shelf.change(
                place, Thing(key=key, body=body, revision=0 if thing is None else thing.revision)
            ):
                break
        else:
            return
        if not session.is_heard:
            await self._post.send(ALL, SAID, {"name": session.name})


async def _read(shelf: Shelf, session: Session) -> tuple[Thing | None, Standing | None]:
    place, key = _at(session)
    thing = await shelf.get(place, key)
    return thing, None if thing is None else msgspec.convert(thing.body, Standing)


def _at(session: Session) -> tuple[Place, str]:
    return Place(session.peer.caller.tenant, KIND, session.peer.key.id), session.name
