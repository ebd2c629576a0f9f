"""Bringing an OpenAPI document in: its operations as a tool file, and what came of each."""

import contextlib
import os
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from toolgate.bootstrap import Toolgate
from toolgate.cli.bring import checked, place_of, write
from toolgate.cli.taken import Taken
from toolgate.errors import CatalogError, InvalidRequest
from toolgate.importing import (
    SUFFIX,
    Imported,
    Progress,
    Remembered,
    Written,
    fetched,
    imported,
    is_address,
    kept_address,
    overlay_in,
    remembered_in,
    specs_in,
    written,
)
from toolgate.settings.settings import Settings
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.names import nearest
from toolgate.toolfiles import read_tool_file

_ENDINGS = (".yaml", ".json")


class Asked(NamedTuple):
    """What to bring, and how."""

    # Paths as they were typed.
    given: Remembered
    # The import whose options hold where none are given.
    again: str = ""
    dry_run: bool = False


async def take(settings: Settings, asked: Asked, progress: Progress | None) -> Taken:
    """Read a document and keep its tools, whole or not at all."""
    made = await made_of(settings, asked, _how(settings, asked), progress)
    return Taken(made.found) if asked.dry_run else await _kept(settings, made)


class Made(NamedTuple):
    """What a document has become, and by which options."""

    found: Imported
    how: Remembered
    where: str

    def file(self) -> Written:
        """The tool file of it."""
        if not self.found.tools:
            raise InvalidRequest("Nothing of the document becomes a tool. Look with --dry-run.")
        return written(self.found, self.how, where=self.where)


async def made_of(
    settings: Settings, asked: Asked, how: Remembered, progress: Progress | None
) -> Made:
    """Read the document and make its tools."""
    more = {"overlay": overlay_in(_place(settings, how.overlay))} if how.overlay else {}
    document = await fetched(settings, asked.given.document or _found(settings, how, asked))
    options = msgspec.structs.replace(how.options, address=document.address)
    found = imported(document, options, progress=progress, **more)
    # By its title a document is called what that says today.
    return Made(found, msgspec.structs.replace(how, name=found.name), document.file)


def _how(settings: Settings, asked: Asked) -> Remembered:
    """The options that hold, as a tool file keeps them."""
    given = given_to(settings, asked)
    if not asked.again:
        return given
    for place in _places(settings, asked.again):
        if kept := remembered_in(settings.root / place, shown=place):
            return above(kept, given, asked)
    raise unknown(asked.again, sorted(_stems(settings)))


def given_to(settings: Settings, asked: Asked) -> Remembered:
    """What was typed, as a tool file keeps it."""
    typed = asked.given
    document = typed.document
    if document:
        far = is_address(document)
        document = kept_address(document) if far else _from_root(settings, document)
    overlay = _from_root(settings, typed.overlay) if typed.overlay else ""
    return msgspec.structs.replace(typed, document=document, overlay=overlay)


def above(kept: Remembered, given: Remembered, asked: Asked) -> Remembered:
    """The options of the last time, with those that are given now above them."""
    found = kept.under(given)
    # One that may not be kept is not that of the last time either.
    return (
        msgspec.structs.replace(found, document=given.document) if asked.given.document else found
    )


def unknown(again: str, listed: list[str]) -> InvalidRequest:
    """No import of this name can be done again."""
    return InvalidRequest(
        f"There is no import {again[:60]!r} that says how it was made."
        f"{nearest(again, listed)} There are: {', '.join(listed) or 'none'}."
    )


def _found(settings: Settings, how: Remembered, asked: Asked) -> str:
    """Where the document was the last time."""
    if not how.document:
        raise InvalidRequest(
            "The address of its document was not kept, since it can hold a secret. Name it again: "
            f"import openapi URL --again {asked.again}"
        )
    return how.document if is_address(how.document) else str(_place(settings, how.document))


def _place(settings: Settings, path: str) -> Path:
    return settings.root / path


def _from_root(settings: Settings, path: str) -> str:
    return path if Path(path).is_absolute() else os.path.relpath(path, settings.root)


def _places(settings: Settings, stem: str) -> list[str]:
    return [str(place_of(settings, f"{stem}{SUFFIX}{ending}")) for ending in _ENDINGS]


def _stems(settings: Settings) -> Iterator[str]:
    folder = (settings.root / _places(settings, "any")[0]).parent
    for path in folder.glob(f"*{SUFFIX}.*"):
        stem, _, ending = path.name.rpartition(SUFFIX)
        if ending in _ENDINGS:
            yield stem


async def _kept(settings: Settings, made: Made) -> Taken:
    file = made.file()
    stem = stem_of(file)
    places = _places(settings, stem)
    place = next(one for one in places if one.endswith(file.name))
    for one in places:
        if (settings.root / one).is_symlink():
            raise InvalidRequest(f"{Path(one).name} is a link, which is not written through.")
    older, last = list(_before(settings, places)), _last(settings, places)
    specs = specs_in(file, place)
    async with Toolgate.open(settings) as gate:
        unusable = checked(gate, places, specs)
    write(settings.root / place, file.text)
    for other in places:
        # What was small has become large, or the other way round.
        if other != place:
            (settings.root / other).unlink(missing_ok=True)
    return told_of(made, place, unusable, Before(older, last), specs)


class Before(NamedTuple):
    """The tools and the options of the last import of this name."""

    specs: Sequence[ToolSpec]
    how: Remembered | None


def told_of(
    made: Made, place: str, unusable: Sequence[str], before: Before, specs: Sequence[ToolSpec]
) -> Taken:
    """What came of an import that is kept, and how it differs from the last one."""
    older, now = ({spec.name: spec for spec in part} for part in (before.specs, specs))
    changed = (name for name in now if name in older)
    return Taken(
        made.found,
        place,
        added=[name for name in now if name not in older],
        removed=[name for name in older if name not in now],
        changed=[name for name in changed if older[name].fingerprint != now[name].fingerprint],
        renamed=list(_renamed(older, now)),
        unusable=unusable,
        again=stem_of(made.file()),
        last="" if before.how is None or before.how == made.how else before.how.shown(),
    )


def stem_of(file: Written) -> str:
    """What an import is called."""
    return file.name.rpartition(SUFFIX)[0]


def _last(settings: Settings, places: Iterable[str]) -> Remembered | None:
    """How it was imported before; one that cannot be read has nothing to compare with."""
    for place in places:
        with contextlib.suppress(CatalogError, InvalidRequest):
            if found := remembered_in(settings.root / place, shown=place):
                return found
    return None


def _renamed(older: dict[str, ToolSpec], now: dict[str, ToolSpec]) -> Iterator[tuple[str, str]]:
    """The same request under another name: whatever means it by the older one does so no more."""
    new = {_request(spec): name for name, spec in now.items() if name not in older}
    for name, spec in older.items():
        if name not in now and (called := new.get(_request(spec))):
            yield name, called


def _request(spec: ToolSpec) -> tuple[object, object]:
    config = spec.config.value()
    return config.get("method"), config.get("path")


def _before(settings: Settings, places: Iterable[str]) -> Iterator[ToolSpec]:
    for place in places:
        path = settings.root / place
        if os.path.lexists(path):
            # One that cannot be read has nothing to compare with.
            with contextlib.suppress(CatalogError):
                yield from read_tool_file(path, place)


@contextmanager
def progress() -> Generator[Progress | None]:
    """How far it is, beside the answer, where somebody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  only a terminal pays for it
    from rich.progress import Progress as Bar  # noqa: PLC0415

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("operations", total=None)

        def told(done: int, everything: int) -> None:
            bar.update(task, completed=done, total=everything)

        yield told
