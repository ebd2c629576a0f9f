"""A document whose operations are tools for as long as the settings name it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from toolgate.errors import InvalidSpecs, SourceUnavailable
from toolgate.net.address import authorization, shown, without_user
from toolgate.net.client import HttpClient
from toolgate.sources.openapi import overlay, reading
from toolgate.sources.openapi.opened import MAX_BYTES, open_document, refused
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.overlay import NOTHING
from toolgate.sources.overlay import MAX_BYTES as MAX_OVERLAY
from toolgate.sources.remote import data_only
from toolgate.spec.reader import read_tools
from toolgate.spec.tool import Origin, ToolSpec

_MOST_TOLD = 3


class OpenApiSource:
    """One document, in a file or behind an address. What has not changed is not read again."""

    def __init__(
        self,
        place: Path | str,
        options: Options,
        client: HttpClient,
        *,
        label: str,
        word: Path | None = None,
    ) -> None:
        """`label`: what an operator calls it. `word`: the overlay with the operator's."""
        self.name = f"openapi {label}"
        # A file is on this machine; an address may be away for a while.
        self.required = isinstance(place, Path)
        self._place = place
        self._options = options
        self._client = client
        self._overlay = word
        self._mark: object = None
        self._said: bytes | None = None
        self._last: list[ToolSpec] = []
        # What an operator should know although the document was read.
        self.problem = ""

    async def load(self) -> Sequence[ToolSpec]:
        """Read the document, or keep what an unchanged one had."""
        said = await asyncio.to_thread(self._word)
        if said != self._said:
            self._mark = None
        raw, mark = await self._raw()
        if raw is None:
            return self._last
        # A large document takes a while to read; calls go on meanwhile.
        self._last = await asyncio.to_thread(self._read, raw, said)
        self._mark, self._said = mark, said
        return self._last

    def _word(self) -> bytes | None:
        """The overlay as it is now: it is small, and read whole each time."""
        return None if self._overlay is None else _bytes_of(self._overlay, most=MAX_OVERLAY)

    async def _raw(self) -> tuple[bytes | None, object]:
        if isinstance(self._place, Path):
            return await asyncio.to_thread(self._from_file, self._place)
        headers = {"Accept": "application/json, application/yaml", **authorization(self._place)}
        if self._mark:
            headers["If-None-Match"] = str(self._mark)
        url = without_user(self._place)
        response = await self._client.get(url, headers=headers, most=MAX_BYTES)
        if response.status == 304 and self._mark:
            return None, self._mark
        if response.status != 200:
            raise SourceUnavailable(
                f"{shown(url)} answered {response.status} instead of 200 with a document."
            )
        return response.body, response.headers.get("ETag", "")

    def _from_file(self, path: Path) -> tuple[bytes | None, object]:
        try:
            found = path.stat()
        except OSError as error:
            raise _unreadable(path, error) from None
        mark = (found.st_mtime_ns, found.st_size, found.st_ino)
        return (None if mark == self._mark else _bytes_of(path, most=MAX_BYTES)), mark

    def _read(self, raw: bytes, said: bytes | None) -> list[ToolSpec]:
        options, file = self._options, self.name
        if isinstance(self._place, Path):
            file = self._place.name
        else:
            address = without_user(self._place).partition("#")[0]
            options = msgspec.structs.replace(options, address=address)
        word = NOTHING
        if said is not None and self._overlay is not None:
            word = overlay.read(said, file=self._overlay.name)
        found = reading.read(open_document(raw, file=file), options, file=file, overlay=word)
        grave = [f"{one.message} ({one.where[0]})" for one in found.notes if one.grave]
        self.problem = " ".join([*found.unknown, *grave][:_MOST_TOLD])
        specs = read_tools(
            list(found.tools),
            file=file,
            origin=Origin("openapi", file),
            line_of=lambda _path: None,
        )
        return data_only(specs, file=file)


def _bytes_of(path: Path, *, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            # One byte more than is taken tells that it is too large.
            return file.read(most + 1)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InvalidSpecs:
    told = f"cannot be read ({error.strerror})"
    return refused(path.name, told, "Correct its path in [tools.openapi].")
