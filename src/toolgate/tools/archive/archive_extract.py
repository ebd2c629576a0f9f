"""Unpacks an archive into a new folder: all of it, or nothing."""

import posixpath
from collections.abc import Sequence
from typing import Any

import msgspec

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.archive.asking import Asked, archive_at
from toolgate.tools.archive.entry import Entry, refusal
from toolgate.tools.archive.unpacking import Unpacking, unpacking
from toolgate.tools.means import Means
from toolgate.tools.system.backups import Backup, Backups, Before
from toolgate.tools.system.gits import check_no_head, check_not_gits
from toolgate.tools.system.globs import Glob
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded

# Bytes that come from a worker at once.
_WINDOW = 8_000_000
_SHOWN = 200
_ENDINGS = (".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")


async def archive_extract(
    means: Means,
    call: Call,
    *,
    path: str,
    to: str = "",
    members: Sequence[str] = (),
) -> dict[str, Any]:
    """Files and folders, and nothing else; the folder has its name once it is whole."""
    async with archive_at(means, path) as archive:
        return await _extracted(means, call, archive, to or _stem(path), members)


async def _extracted(
    means: Means, call: Call, archive: Asked, target: str, members: Sequence[str]
) -> dict[str, Any]:
    told = await archive.about("manifest")
    if told["problems"]:
        first = told["problems"][0]
        raise ToolError(refusal(first["name"], first["why"], len(told["problems"])))
    entries = msgspec.convert(told["entries"], list[Entry])
    chosen = _chosen(entries, members)
    with Roots.of(means).founding(target) as spot, unpacking(spot) as made:
        await _unpack(archive, entries, chosen, made)
        digest = await threaded(made.digest)
        backup = Backup(path=spot.shown, before=Before(), after=digest, is_folder=True)
        name = await Backups(means.shelf, call.caller).keep(backup, b"")
        await threaded(made.finish)
        shown = spot.shown
    files = [entries[place] for place in chosen if entries[place].kind == "file"]
    return {
        "path": archive.shown,
        "to": shown,
        "files": len(files),
        "bytes": sum(entry.size for entry in files),
        "extracted": [entry.path for entry in files[:_SHOWN]],
        "truncated": len(files) > _SHOWN,
        "backup": name,
    }


async def _unpack(
    archive: Asked, entries: Sequence[Entry], chosen: Sequence[int], made: Unpacking
) -> None:
    # Empty files and folders have no bytes that would come.
    for place in chosen:
        if entries[place].kind == "folder" or not entries[place].size:
            await threaded(made.begin, entries[place])
    places = [place for place in chosen if entries[place].kind == "file" and entries[place].size]
    begin, last, is_all = 0, -1, not places
    while not is_all:
        found = await archive.taken("window", places=places, begin=begin, most=_WINDOW)
        at = 0
        pieces: list[tuple[int, int]] = found.value["pieces"]
        for place, size in pieces:
            if place != last:
                await threaded(made.begin, entries[place])
                last = place
            await threaded(made.write, found.content[at : at + size])
            at += size
        begin += at
        is_all = found.value["is_all"]
    if begin != sum(entries[place].size for place in places):
        raise ToolError("The archive holds other than what it says. Nothing was unpacked.")


def _chosen(entries: Sequence[Entry], members: Sequence[str]) -> list[int]:
    """Those that are named, or match a pattern, with all that is in a named folder."""
    named = [entry for entry in enumerate(entries) if entry[1].path]
    if members:
        globs = [Glob(member.strip("/")) for member in members if member.strip("/")]
        folders = tuple(member.strip("/") + "/" for member in members if member.strip("/"))
        named = [
            (place, entry)
            for place, entry in named
            if entry.path.startswith(folders) or any(glob.matches(entry.path) for glob in globs)
        ]
    if not named:
        what = "of that name" if members else "at all"
        raise ToolError(f"The archive holds nothing {what}. Look at it with archive_open.")
    for _, entry in named:
        parts = entry.path.split("/")
        for part in parts:
            check_not_gits(part)
        if entry.kind == "file":
            check_no_head(parts[-1])
    return [place for place, _ in named]


def _stem(path: str) -> str:
    """Beside the archive, named as it without its ending."""
    folder, name = posixpath.split(path)
    for ending in _ENDINGS:
        if name.lower().endswith(ending) and len(name) > len(ending):
            return posixpath.join(folder, name[: -len(ending)])
    stem, ending = posixpath.splitext(name)
    return posixpath.join(folder, stem if ending and stem else f"{name}-unpacked")
