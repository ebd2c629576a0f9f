"""What on this machine is the house's own, wherever it lies.

Who changes its definitions says what is allowed; who changes its code says what runs. So no tool
writes them, and no folder that tools write may be one of them, or lie in one. What the house keeps
to itself no tool reads either.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path, PurePath

import msgspec

from toolgate.configuration import FILE
from toolgate.errors import SettingsInvalid
from toolgate.plugins.copies import AGREED
from toolgate.sandbox.ways import is_below
from toolgate.settings.settings import FOLDER, Settings
from toolgate.tools.code.interpreter import own_code

_SIGNS = frozenset("*?[")


class Premises(msgspec.Struct, frozen=True, kw_only=True):
    """`own` is written by no tool and no program, and `secret` not even read by one.

    `unseen` is what built-in tools do not read: beside that also what programs of plugins keep.
    """

    own: tuple[Path, ...]
    secret: tuple[Path, ...]
    unseen: tuple[Path, ...]


def premises(settings: Settings) -> Premises:
    """What the settings make the house's own; `SettingsInvalid` where tools could write it."""
    home, roots = settings.root.absolute(), roots_of(settings)
    kept = (settings.plugins.settings, settings.plugins.data, settings.queue.key_file)
    unseen = (*stored(settings), *(settings.path(path) for path in kept if path))
    if any(is_below(os.path.realpath(home), root) for root in roots):
        # Who may see all around it has no business with the gate in the middle.
        unseen = (home, *unseen)
    found = Premises(
        own=tuple(dict.fromkeys((*_definitions(settings), *_code(home, roots)))),
        secret=(*stored(settings), settings.path(settings.plugins.settings)),
        unseen=unseen,
    )
    _check(settings, found)
    return found


def roots_of(settings: Settings) -> list[str]:
    """Where the folders are that tools may touch files in. The whole machine is none."""
    found = [os.path.realpath(settings.path(root)) for root in settings.tools.roots]
    return [root for root in found if root != "/"]


def unagreed(settings: Settings) -> list[str]:
    """Where code may lie that nobody has agreed to: what tools write, and plugins as they lie."""
    folders = (settings.path(folder) for folder in settings.tools.plugins)
    return [*roots_of(settings), *map(os.path.realpath, folders)]


def stored(settings: Settings) -> tuple[Path, ...]:
    """The file of the store, and the folder that is made for it."""
    url = settings.store.url
    if not url.startswith("sqlite:///") or url.endswith(":memory:"):
        return ()
    path = settings.path(url.removeprefix("sqlite:///"))
    return (path,) if path.parent == settings.root.absolute() else (path.parent,)


def room(settings: Settings) -> int | None:
    """How many bytes are free where the store is, or where it would be; `None` where nobody can
    tell.
    """
    place, url = settings.root, settings.store.url
    if url.startswith("sqlite:///") and not url.endswith(":memory:"):
        place = settings.path(url.removeprefix("sqlite:///")).parent
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return None


def witness_of(settings: Settings) -> Path | None:
    """The file that remembers how far the store had come: beside it, unless the settings say."""
    if settings.store.witness:
        return settings.path(settings.store.witness)
    url = settings.store.url
    if not url.startswith("sqlite:///") or url.endswith(":memory:"):
        return None
    return settings.path(f"{url.removeprefix('sqlite:///')}.seen")


def cache_of(settings: Settings) -> Path | None:
    """Where the house keeps what it can make again: beside its store, or with the user's own.

    What lies there is run, so a folder that tools reach is none.
    """
    for place in stored(settings):
        if place != settings.path(settings.store.url.removeprefix("sqlite:///")):
            return place
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  it may have none
    found = os.path.realpath(os.path.join(home, "toolgate"))  # noqa: PTH118
    is_reached = any(is_below(found, root) for root in roots_of(settings))
    return None if is_reached or not home.startswith("/") else Path(found)


def _definitions(settings: Settings) -> Iterator[Path]:
    """Every file and folder that the settings name and the house goes by."""
    tools, queue = settings.tools, settings.queue
    documents = (one.document for one in tools.openapi.values() if "://" not in one.document)
    servers = settings.mcp.servers.values()
    overlays = (one.overlay for one in (*tools.openapi.values(), *servers))
    programs = (program for one in servers for program in one.command[:1] if "/" in program)
    named = (
        *(FILE, settings.policy.path, *documents, *overlays, *programs),
        *(*tools.plugins, settings.plugins.settings, f"{settings.plugins.data}/{AGREED}"),
        *(queue.ca_file, queue.cert_file, queue.key_file),
    )
    yield from (settings.path(path) for path in named if path)
    witness = witness_of(settings)
    if witness is not None:
        yield witness
    if settings.file is not None:
        yield settings.file.absolute()
    for glob in tools.files:
        yield from _tool_files(settings.root.absolute(), glob)


def _tool_files(home: Path, glob: str) -> Iterator[Path]:
    """All that a pattern can match, now or later; and where links among that lead today."""
    parts = PurePath(glob).parts
    fixed = tuple(takewhile(lambda part: not _SIGNS & set(part), parts))
    base = Path(os.path.normpath(home.joinpath(*fixed)))
    # What stands beside the settings themselves is in a folder that is no root.
    if base != home or len(parts) > len(fixed) + 1:
        yield base
    with contextlib.suppress(ValueError, NotImplementedError, OSError):
        for path in home.glob(glob):
            real = os.path.realpath(path)
            if not is_below(real, os.path.realpath(base)):
                yield Path(real)


def _code(home: Path, roots: list[str]) -> Iterator[Path]:
    """Our own, and what is found where this process looks for modules."""
    yield from map(Path, own_code())
    for place in sys.path:
        real = os.path.realpath(place)
        if any(is_below(real, root) for root in roots):
            yield Path(real)
    with contextlib.suppress(OSError):
        for file in home.glob("*/__init__.py"):
            real = os.path.realpath(file.parent)
            # Of a root it says nothing: tools could have put it there.
            if not any(is_below(root, real) for root in roots):
                yield file.parent


def _check(settings: Settings, found: Premises) -> None:
    problems: list[str] = []
    home = os.path.realpath(settings.root)
    for text in settings.tools.roots:
        root = os.path.realpath(settings.path(text))
        if root == home:
            problems.append(
                f"tools.roots: {text!r} is the folder of the settings, with the code and the "
                f"definitions in it; name a folder in it, such as {FOLDER!r}"
            )
            continue
        for path in (*found.own, *found.unseen):
            if is_below(root, os.path.realpath(path)):
                problems.append(
                    f"tools.roots: {text!r} is, or lies in, {_shown(path, settings.root)}, which "
                    "is toolgate's own; name a folder elsewhere"
                )
                break
    if problems:
        raise SettingsInvalid(problems)


def _shown(path: Path, home: Path) -> str:
    """As the settings would name it; where on the machine it is, is nobody's business."""
    if path == home.absolute():
        return "the folder of the settings"
    return repr(str(path.relative_to(home.absolute()))) if path.is_relative_to(home) else "a folder"
