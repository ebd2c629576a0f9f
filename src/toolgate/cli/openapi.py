"""Bringing an OpenAPI document in: its operations as a tool file, and what came of each."""

import contextlib
import os
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from toolgate.bootstrap import Toolgate, read_tool_file
from toolgate.cli import show
from toolgate.cli.bring import checked, place_of, write
from toolgate.errors import CatalogError, InvalidRequest
from toolgate.importing import (
    Imported,
    Options,
    Progress,
    Written,
    fetched,
    imported,
    overlay_in,
    specs_in,
    written,
)
from toolgate.settings.settings import Settings
from toolgate.spec.tool import ToolSpec

_SHOWN = 20
_ENDINGS = (".yaml", ".json")


class Asked(NamedTuple):
    """What to bring, and how."""

    where: str
    options: Options
    overlay: Path | None
    dry_run: bool


class Taken(NamedTuple):
    """What came of it. `file` is empty where nothing was written."""

    found: Imported
    file: str = ""
    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    changed: Sequence[str] = ()
    unusable: Sequence[str] = ()


async def take(settings: Settings, asked: Asked, progress: Progress | None) -> Taken:
    """Read a document and keep its tools, whole or not at all."""
    overlay = None if asked.overlay is None else overlay_in(asked.overlay)
    document = await fetched(settings, asked.where)
    options = msgspec.structs.replace(asked.options, address=document.address)
    found = imported(document, options, overlay=overlay, progress=progress)
    if asked.dry_run:
        return Taken(found)
    if not found.tools:
        raise InvalidRequest("Nothing of the document becomes a tool. Look with --dry-run.")
    file = written(found, name=options.name, where=document.file)
    return await _kept(settings, found, file)


async def _kept(settings: Settings, found: Imported, file: Written) -> Taken:
    stem = file.name.removesuffix(".yaml").removesuffix(".json")
    places = [place_of(settings, stem + ending) for ending in _ENDINGS]
    place = next(one for one in places if one.name == file.name)
    for one in places:
        if (settings.root / one).is_symlink():
            raise InvalidRequest(f"{one.name} is a link, which is not written through.")
    older = list(_before(settings, map(str, places)))
    before = {one.name: one.fingerprint for one in older}
    specs = specs_in(file, str(place))
    async with Toolgate.open(settings) as gate:
        unusable = checked(gate, [str(one) for one in places], specs)
    write(settings.root / place, file.text)
    for other in places:
        # What was small has become large, or the other way round.
        if other != place:
            (settings.root / other).unlink(missing_ok=True)
    now = {spec.name: spec.fingerprint for spec in specs}
    return Taken(
        found,
        str(place),
        added=[name for name in now if name not in before],
        removed=[name for name in before if name not in now],
        changed=[name for name in now if before.get(name, now[name]) != now[name]],
        unusable=unusable,
    )


def _before(settings: Settings, places: Iterable[str]) -> Iterator[ToolSpec]:
    for place in places:
        path = settings.root / place
        if os.path.lexists(path):
            # One that cannot be read has nothing to compare with.
            with contextlib.suppress(CatalogError):
                yield from read_tool_file(path, place)


def tell(taken: Taken, *, json: bool) -> None:
    """What came of an import: the tools, what changed, what to set, and what was left out."""
    found = taken.found
    if json:
        show.as_json(_row(taken))
        return
    if taken.file:
        many = show.count(len(found.tools), "tool")
        moved = f"{len(taken.added)} new, {len(taken.changed)} changed, {len(taken.removed)} gone"
        show.line(f"{taken.file} has {many}: {moved}.")
        for word in ("changed", "removed"):
            names = getattr(taken, word)
            if names:
                show.line(f"{word}: {_some(names)}")
    else:
        columns = ["name", "effect", "request", "description"]
        rows = [
            [
                tool["name"],
                str(tool["effect"]),
                f"{tool['config']['method']} {tool['config']['path']}",
                tool.get("description", "")[:60],
            ]
            for tool in found.tools
        ]
        show.table(columns, rows)
    _tell_rest(taken)


def _tell_rest(taken: Taken) -> None:
    found = taken.found
    for secret in found.secrets:
        hosts = ", ".join(f'"{host}"' for host in secret.hosts[:10])
        show.line(f"Its tools need a secret, {secret.about}; set it in the settings:")
        show.line(f"  [providers.http.secrets.{secret.name}]")
        show.line(f'  value_env = "{secret.name.upper()}"')
        show.line(f"  hosts = [{hosts}]")
    reasons: dict[str, list[str]] = {}
    for one in found.skipped:
        reasons.setdefault(one.reason, []).append(one.operation)
    if reasons:
        show.line(f"{show.count(len(found.skipped), 'operation')} left out:")
        rows = [[str(len(where)), reason, where[0]] for reason, where in reasons.items()]
        show.table(["count", "reason", "such as"], rows[:_SHOWN])
    for note in found.notes[:_SHOWN]:
        show.line(f"{note.message} ({_some(note.where)})")
    if len(found.notes) > _SHOWN or len(reasons) > _SHOWN:
        show.line("There is more: --json tells all of it.")
    if taken.unusable:
        told = taken.unusable[0]
        more = f" So do {len(taken.unusable) - 1:,} others." if taken.unusable[1:] else ""
        show.line(told + more)


def _row(taken: Taken) -> dict[str, object]:
    found = taken.found
    return {
        "title": found.title,
        "version": found.version,
        "operations": found.operations,
        "file": taken.file,
        "tools": [tool["name"] for tool in found.tools],
        "added": taken.added,
        "changed": taken.changed,
        "removed": taken.removed,
        "skipped": [{"operation": one.operation, "reason": one.reason} for one in found.skipped],
        "notes": [{"message": one.message, "where": one.where} for one in found.notes],
        "secrets": [
            {"name": one.name, "about": one.about, "hosts": one.hosts} for one in found.secrets
        ],
        "unusable": taken.unusable,
    }


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"


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
