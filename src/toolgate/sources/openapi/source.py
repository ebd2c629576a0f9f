"""A document whose operations are tools for as long as the settings name it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from toolgate.errors import SourceUnavailable
from toolgate.net.address import authorization, shown, without_user
from toolgate.sources.http import Client
from toolgate.sources.openapi import reading
from toolgate.sources.openapi.opened import MAX_BYTES, open_document, refused
from toolgate.sources.remote import data_only
from toolgate.spec.reader import read_tools
from toolgate.spec.tool import Origin, ToolSpec


class OpenApiSource:
    """One document, in a file or behind an address. What has not changed is not read again."""

    def __init__(
        self, place: Path | str, options: reading.Options, client: Client, *, label: str
    ) -> None:
        """`label`: what an operator calls it."""
        self.name = f"openapi {label}"
        # A file is on this machine; an address may be away for a while.
        self.required = isinstance(place, Path)
        self._place = place
        self._options = options
        self._client = client
        self._mark: object = None
        self._last: list[ToolSpec] = []

    async def load(self) -> Sequence[ToolSpec]:
        """Read the document, or keep what an unchanged one had."""
        raw, mark = await self._raw()
        if raw is None:
            return self._last
        # A large document takes a while to read; calls go on meanwhile.
        self._last = await asyncio.to_thread(self._read, raw)
        self._mark = mark
        return self._last

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
            mark = (found.st_mtime_ns, found.st_size, found.st_ino)
            if mark == self._mark:
                return None, mark
            with path.open("rb") as file:
                return file.read(MAX_BYTES + 1), mark
        except OSError as error:
            told = f"cannot be read ({error.strerror})"
            raise refused(path.name, told, "Correct its path in [tools.openapi].") from None

    def _read(self, raw: bytes) -> list[ToolSpec]:
        options, file = self._options, self.name
        if isinstance(self._place, Path):
            file = self._place.name
        else:
            address = without_user(self._place).partition("#")[0]
            options = msgspec.structs.replace(options, address=address)
        found = reading.read(open_document(raw, file=file), options, file=file)
        specs = read_tools(
            list(found.tools),
            file=file,
            origin=Origin("openapi", file),
            line_of=lambda _path: None,
        )
        return data_only(specs, file=file)
