"""An operator's folder of policies: Rego files, and the data beside them.

`*.rego` anywhere below it, but for `*_test.rego`. Every other JSON or YAML file is data and stands
at its folder's place, as OPA has it: `shop/data.json` is `data.shop`; `*cases.yaml` are tests.
Hidden files, and what is no regular file inside the folder, are left out.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import orjson

from toolgate.errors import InvalidPolicy, SettingsInvalid
from toolgate.settings.settings import Settings
from toolgate.text import document
from toolgate.text.refusal import Refusal

MAX_FILES = 1_000
MAX_DATA_BYTES = 8 * 1024 * 1024
_DATA = (".json", ".yaml", ".yml")
# One stamp a file: what changes when it is written to, replaced or removed.
Stamp = tuple[tuple[str, int, int, int], ...]


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: texts and data by shown path, and what is wrong."""

    modules: dict[str, str]
    data: dict[str, Any]
    problems: tuple[str, ...]
    # How many files of data there are.
    documents: int = 0


def named(settings: Settings) -> Path:
    """Where the settings say that it is. One that is written there has to be there."""
    given = settings.policy
    place = settings.path(given.path)
    used = given.engine == "rego" or given.push
    if used and "path" in given.model_fields_set and (not place.exists() or place.is_file()):
        raise SettingsInvalid(
            [f"policy.path: there is no folder {given.path!r}; make it, or correct the path"]
        )
    return place


def paths(root: Path) -> list[tuple[str, Path]]:
    """The files that count, by the path that messages show."""
    found: list[tuple[str, Path]] = []
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            if _counts(name) and path.is_file() and not path.is_symlink():
                found.append((_shown(path.relative_to(root)), path))
    return sorted(found)


def stamp(root: Path) -> Stamp:
    """Whether anything has changed since the last look, without reading."""
    stamps: list[tuple[str, int, int, int]] = []
    for shown, path in paths(root):
        try:
            state = path.stat()
        except OSError:
            continue
        stamps.append((shown, state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(stamps)


def read(root: Path) -> Folder:
    """Every file, with the problems of all of them."""
    return _folder([(shown, partial(_read, path)) for shown, path in paths(root)])


def given(files: Mapping[str, bytes]) -> Folder:
    """The same of files that lie elsewhere, by their path in the folder."""
    counted = [(path, raw) for path, raw in sorted(files.items()) if _counts(Path(path).name)]
    return _folder([(path, partial(bytes, raw)) for path, raw in counted])


def texts(root: Path) -> dict[str, str]:
    """The files of a folder, to be sent elsewhere; `InvalidPolicy` where it cannot be."""
    if not root.is_dir():
        raise InvalidPolicy([f"{root}: there is no such folder."])
    found: dict[str, str] = {}
    for shown, path in paths(root):
        try:
            found[shown] = _text(_read(path))
        except _WrongFile as wrong:
            raise InvalidPolicy([f"{shown}:{wrong}"]) from None
    return found


def _folder(files: Sequence[tuple[str, Callable[[], bytes]]]) -> Folder:
    modules: dict[str, str] = {}
    data: dict[str, Any] = {}
    problems: list[str] = []
    if len(files) > MAX_FILES:
        problems.append(f"policies: there are more than {MAX_FILES:,} files; put data into few.")
        files = []
    for shown, load in files:
        place = Path(shown)
        try:
            raw = load()
            if place.suffix == ".rego":
                modules[shown] = _text(raw)
            else:
                _merge(data, place.parent.parts, _value(raw, place.suffix))
        except _WrongFile as wrong:
            problems.append(f"{shown}:{wrong}")
    return Folder(
        modules=modules,
        data=data,
        problems=tuple(problems),
        documents=sum(Path(shown).suffix != ".rego" for shown, _ in files),
    )


class _WrongFile(Exception):
    """`line: what is wrong`, or ` what is wrong`."""


def _counts(name: str) -> bool:
    if name.startswith("."):
        return False
    stem, suffix = Path(name).stem, Path(name).suffix
    if suffix == ".rego":
        return not stem.endswith("_test")
    return suffix in _DATA and not stem.endswith("cases")


def _shown(path: Path) -> str:
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_DATA_BYTES + 1)
    except OSError as error:
        raise _WrongFile(f" it cannot be read ({error.strerror}).") from None
    if len(raw) > MAX_DATA_BYTES:
        raise _WrongFile(f" it has more than {MAX_DATA_BYTES:,} bytes. Split it.")
    return raw


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _WrongFile(f"{line}: it is not UTF-8 text.") from None


def _value(raw: bytes, suffix: str) -> dict[str, Any]:
    try:
        value = document.read(raw, is_json=suffix == ".json").value
    except Refusal as refusal:
        line = f"{refusal.line}:" if refusal.line else ""
        raise _WrongFile(f"{line} it {refusal.message}. {refusal.write}") from None
    try:
        orjson.dumps(value)
    except TypeError as error:
        raise _WrongFile(f" no engine can hold it ({error}).") from None
    if not isinstance(value, dict):
        raise _WrongFile(' data is an object: {"global_tool_deny": ["name"]}.')
    return cast("dict[str, Any]", value)


def _merge(data: dict[str, Any], place: tuple[str, ...], value: dict[str, Any]) -> None:
    for part in place:
        data = _object(data, part)
    for key, part in value.items():
        if key in data and not (isinstance(data[key], dict) and isinstance(part, dict)):
            raise _WrongFile(f" {key!r} is already there from another file.")
        if isinstance(part, dict):
            _merge(_object(data, key), (), cast("dict[str, Any]", part))
        else:
            data[key] = part


def _object(data: dict[str, Any], part: str) -> dict[str, Any]:
    inner = data.setdefault(part, {})
    if not isinstance(inner, dict):
        raise _WrongFile(f" {part!r} is already there from another file.")
    return cast("dict[str, Any]", inner)
