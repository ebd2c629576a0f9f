"""Bringing tools to a running server: documents are read here, and only tool files go there.

The server fetches nothing because somebody has named it, and takes no tool that names code.
"""

import contextlib
from pathlib import Path
from typing import Any

from toolgate.cli.bring import Brought, text_of
from toolgate.cli.far import Server
from toolgate.cli.openapi import (
    Asked,
    Before,
    above,
    given_to,
    made_of,
    stem_of,
    told_of,
    unknown,
)
from toolgate.cli.taken import Taken
from toolgate.errors import CatalogError, InvalidRequest
from toolgate.importing import (
    SUFFIX,
    Progress,
    Remembered,
    Written,
    remembered_of,
    specs_in,
)
from toolgate.settings.settings import Settings

_IMPORTS = "imports"


async def take_there(
    server: Server, settings: Settings, asked: Asked, progress: Progress | None
) -> Taken:
    """Read a document here and keep its tools there, whole or not at all."""
    given = given_to(settings, asked)
    how = given if not asked.again else above(await _again(server, asked.again), given, asked)
    made = await made_of(settings, asked, how, progress)
    if asked.dry_run:
        return Taken(made.found)
    file = made.file()
    place = stem_of(file) + SUFFIX
    before = await _before(server, place)
    told = await server.put(_IMPORTS, place, text=file.text.decode(), replace=True)
    return told_of(made, place, told["notes"], before, specs_in(file, place))


async def bring_there(server: Server, file: Path, *, replace: bool) -> Brought:
    """Keep a tool file there as it is."""
    try:
        text = text_of(file).decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{file} is not UTF-8 text.") from None
    told = await server.put(_IMPORTS, file.stem, text=text, replace=replace)
    return Brought(told["name"], told["tools"], told["notes"])


async def _again(server: Server, stem: str) -> Remembered:
    kept = await _text(server, stem + SUFFIX)
    found = None if kept is None else remembered_of(kept.encode(), shown=stem + SUFFIX)
    if found is None:
        names = [name for name in await _names(server) if name.endswith(SUFFIX)]
        raise unknown(stem, [name.removesuffix(SUFFIX) for name in names])
    return found


async def _before(server: Server, place: str) -> Before:
    kept = await _text(server, place)
    # One that cannot be read has nothing to compare with.
    with contextlib.suppress(CatalogError, InvalidRequest):
        if kept is not None:
            raw = kept.encode()
            return Before(specs_in(Written(place, raw), place), remembered_of(raw, shown=place))
    return Before((), None)


async def _text(server: Server, name: str) -> str | None:
    if name not in await _names(server):
        return None
    shown: dict[str, Any] = await server.get(_IMPORTS, name)
    return shown["text"]


async def _names(server: Server) -> list[str]:
    return [one["name"] for one in (await server.get(_IMPORTS))[_IMPORTS]]
