"""Whose request a message is about that does not say so itself."""

from toolgate.asked import Line
from toolgate.upstreams import message
from toolgate.upstreams.message import Json

# Requests that were given up and never answered. A server that has more of them is not told apart.
_MOST_LEFT = 1_024


class Callers:
    """All requests that a server may still be at work on.

    What it says or asks beside its answers names none of them. Only where there is just one can it
    be that one's: among two, the question of one tenant would be answered by another.
    """

    def __init__(self) -> None:
        self._open: dict[int, Line | None] = {}
        self._left: set[int] = set()
        self._is_lost = False

    def begin(self, id_: int, line: Line | None) -> None:
        """It is on its way; also one whose caller cannot be spoken to."""
        self._open[id_] = line

    def answered(self, id_: int) -> None:
        """Its server is done with it, however late."""
        self._open.pop(id_, None)
        self._left.discard(id_)

    def leave(self, id_: int) -> bool:
        """Nobody waits any more. Whether its server may go on, and speak of it."""
        if id_ not in self._open:
            return False
        del self._open[id_]
        if len(self._left) < _MOST_LEFT:
            self._left.add(id_)
        else:
            self._is_lost = True
        return True

    def meant(self, said: Json) -> tuple[int | None, Line | None]:
        """The request, and its caller: progress says which, else there has to be just one."""
        if said.get("method") == "notifications/progress":
            token = message.params_of(said).get("progressToken")
            return (token, self._open.get(token)) if type(token) is int else (None, None)
        if len(self._open) != 1 or self._left or self._is_lost:
            return None, None
        return next(iter(self._open.items()))

    def forget(self) -> None:
        """A server that has begun anew is at work on nothing that was given up before."""
        self._left.clear()
        self._is_lost = False
