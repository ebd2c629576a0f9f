"""What files were before a tool changed them, for as long as that can be taken back."""

import base64
import secrets
import zlib
from typing import Any

import msgspec

from toolgate import clock
from toolgate.caller import Caller
from toolgate.ledger.history import owner_of
from toolgate.shelf import Place, Shelf, Thing

# As the definitions of the tools say, with a day for those who ask at the last moment.
WINDOW = 31 * 86_400
_KIND = "file_backup"
_CONTENT = "file_backup_content"
_PIECE = 1_000_000
# The oldest go first, so that nobody fills the store by writing.
_MOST = 500
_LOOK = 20


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was. `kept` says how it comes back: as a whole, or as the beginning of what is.

    One that was not there has no `mode`.
    """

    mode: int | None = None
    changed_ns: int = 0
    size: int = 0
    digest: str = ""
    kept: str = "whole"


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to one path. `after` is the digest of what the tool has left there.

    `made` are folders that were made for it, from the top. `is_folder`: all of it is new.
    """

    path: str
    before: Before
    after: str
    made: tuple[str, ...] = ()
    is_folder: bool = False


# Of a call that has written no file, so that taking it back does nothing.
NOTHING = Backup(path="", before=Before(), after="")


class Backups:
    """Those of one caller: nobody else finds them."""

    def __init__(self, shelf: Shelf, caller: Caller) -> None:
        self._shelf = shelf
        self._notes = Place(caller.tenant, _KIND, owner_of(caller))
        self._contents = Place(caller.tenant, _CONTENT, owner_of(caller))

    async def keep(self, backup: Backup, content: bytes) -> str:
        """Its name, which whoever wants it back gives."""
        await self._forget_old()
        # In the order of time, and not to be guessed.
        name = f"{clock.unix_ns():020d}-{secrets.token_hex(8)}"
        packed = zlib.compress(content, 1) if content else b""
        pieces = [packed[at : at + _PIECE] for at in range(0, len(packed), _PIECE)]
        for number, piece in enumerate(pieces):
            text = base64.b64encode(piece).decode()
            await self._shelf.put(self._contents, [Thing(key=_key(name, number), body={"z": text})])
        body: dict[str, Any] = {"backup": msgspec.to_builtins(backup), "pieces": len(pieces)}
        await self._shelf.put(self._notes, [Thing(key=name, body=body)])
        return name

    async def find(self, name: str) -> tuple[Backup, bytes] | None:
        """What was kept under a name."""
        note = await self._shelf.get(self._notes, name)
        if note is None:
            return None
        packed: list[bytes] = []
        for number in range(note.body["pieces"]):
            piece = await self._shelf.get(self._contents, _key(name, number))
            if piece is None:
                return None
            packed.append(base64.b64decode(piece.body["z"]))
        backup = msgspec.convert(note.body["backup"], Backup)
        return backup, zlib.decompress(b"".join(packed)) if packed else b""

    async def _forget_old(self) -> None:
        oldest = await self._shelf.page(self._notes, most=_LOOK)
        too_many = await self._shelf.count(self._notes) - _MOST + 1
        since = clock.unix_ns() - WINDOW * 1_000_000_000
        gone = [
            note
            for place, note in enumerate(oldest)
            if place < too_many or int(note.key.partition("-")[0]) < since
        ]
        if not gone:
            return
        await self._shelf.remove(
            self._contents,
            [_key(note.key, number) for note in gone for number in range(note.body["pieces"])],
        )
        await self._shelf.remove(self._notes, [note.key for note in gone])


def _key(name: str, number: int) -> str:
    return f"{name}/{number:04d}"
