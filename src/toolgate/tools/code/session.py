"""The files of one session's code, kept on the shelf between its calls.

They belong to one agent with one user of one tenant, in one session: nobody else has a name for
them, and no tool for files reaches them.
"""

import base64
import hashlib
import random
import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence

from toolgate import clock
from toolgate.caller import Caller
from toolgate.ledger.history import owner_of
from toolgate.shelf import Place, Shelf, Thing
from toolgate.tools.code.execution import MOST_BYTES, MOST_FILES

NOTES = "code_session"
CONTENTS = "code_session_file"
KEPT_DAYS = 7
# The oldest go first, so that nobody fills the store.
MOST_SESSIONS = 20
_TRIES = 8
_DAY = 86_400 * 1_000_000_000
# So many places of others are looked at, now and then, for what is old.
_SWEPT = 10


class Session:
    """One that a caller is in. Where it is in none, nothing is kept."""

    def __init__(self, shelf: Shelf, caller: Caller) -> None:
        self._shelf = shelf
        self._notes, self._contents, self._key = whose(caller)

    @property
    def is_kept(self) -> bool:
        """Whether there is one."""
        return bool(self._key)

    async def files(self) -> dict[str, bytes]:
        """All that was kept, by path."""
        note = await self._shelf.get(self._notes, self._key) if self._key else None
        found: dict[str, bytes] = {}
        for path, name in _named(note).items():
            thing = await self._shelf.get(self._contents, name)
            # Another call of this session may have replaced it meanwhile.
            if thing is not None:
                found[path] = zlib.decompress(base64.b64decode(thing.body["z"]))
        return found

    async def keep(self, changed: Mapping[str, bytes], removed: Iterable[str]) -> bool:
        """Put them beside what is there. Whether there was room: else all is as it was."""
        if not self._key:
            return True
        made = {path: f"{self._key}/{secrets.token_hex(12)}" for path in changed}
        await self._shelf.put(
            self._contents,
            [Thing(key=made[path], body=_body(content)) for path, content in changed.items()],
        )
        sizes = {made[path]: len(content) for path, content in changed.items()}
        for _ in range(_TRIES):
            note = await self._shelf.get(self._notes, self._key)
            if note is None and not made:
                return True
            before = _named(note)
            after = {path: name for path, name in before.items() if path not in set(removed)}
            after |= made
            sizes |= {} if note is None else note.body["sizes"]
            if len(after) > MOST_FILES or sum(sizes[name] for name in after.values()) > MOST_BYTES:
                break
            body = {"files": after, "sizes": {name: sizes[name] for name in after.values()}}
            thing = Thing(key=self._key, body=body, revision=note.revision if note else 0)
            if await self._shelf.change(self._notes, thing):
                gone = set(before.values()) - set(after.values())
                await self._shelf.remove(self._contents, sorted(gone))
                if note is None:
                    await self._tidy()
                return True
        await self._shelf.remove(self._contents, sorted(made.values()))
        return False

    async def _tidy(self) -> None:
        """A new session: what is old goes, here and in a few other places."""
        await pruned(self._shelf, self._notes)
        places = await self._shelf.places(NOTES)
        for place in random.sample(list(places), min(_SWEPT, len(places))):
            await pruned(self._shelf, place)


async def pruned(shelf: Shelf, place: Place) -> Sequence[str]:
    """Take away what nobody has touched for days, and the oldest of too many; their keys."""
    notes = sorted(await shelf.page(place), key=lambda note: -note.updated_ns)
    since = clock.unix_ns() - KEPT_DAYS * _DAY
    old = [
        note
        for number, note in enumerate(notes)
        if number >= MOST_SESSIONS or note.updated_ns < since
    ]
    contents = Place(place.tenant, CONTENTS, place.owner)
    for note in old:
        await shelf.remove(place, [note.key])
        await shelf.remove(contents, list(_named(note).values()))
    return [note.key for note in old]


def whose(caller: Caller) -> tuple[Place, Place, str]:
    """Where a caller's session is: its note, its contents, and its key in both."""
    owner = owner_of(caller)
    key = hashlib.sha256(caller.session.encode()).hexdigest() if caller.session else ""
    return Place(caller.tenant, NOTES, owner), Place(caller.tenant, CONTENTS, owner), key


def _named(note: Thing | None) -> dict[str, str]:
    return {} if note is None else dict(note.body["files"])


def _body(content: bytes) -> dict[str, str]:
    return {"z": base64.b64encode(zlib.compress(content, 1)).decode()}
