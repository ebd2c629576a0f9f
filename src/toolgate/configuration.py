"""`toolgate.toml` and the environment become Settings: read whole, all mistakes told at once.

Every key can come from the environment as `TOOLGATE_SECTION__KEY`.
"""

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from toolgate import crash
from toolgate.errors import SettingsInvalid
from toolgate.settings import tree
from toolgate.settings.settings import SECTIONS, Settings

PREFIX = "TOOLGATE_"
FILE = "toolgate.toml"
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=")
_PASSWORD = re.compile(r"\w+://[^/@]*:[^/@]+@")
_SECTION = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
# What commands read beside the settings: where a server is, and its key.
ELSEWHERE = frozenset({"TOOLGATE_URL", "TOOLGATE_KEY"})
# Announced, and refused until it does something: a key that is silently ignored is a lie.
LATER: frozenset[str | tuple[str, ...]] = frozenset({"learning"})


class Problem(NamedTuple):
    """A key that cannot be used: where it stands, and what to write."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def load(file: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read a settings file (none: only defaults) and the environment, or say all that is wrong."""
    environment = os.environ if environment is None else environment
    text, values, root = "", cast("dict[str, Any]", {}), Path.cwd()
    place: Path | None = None
    if file is not None:
        text, values = _read(Path(file))
        place = Path(file).absolute()
        root = place.parent
    given = _overlay(environment)
    named = frozenset(_named(values, given))
    overlay = [one for one in given if one[1] not in named or tree.is_setting(one[0])]
    places = _Places(str(file or ""), text, {path: name for path, name, _ in overlay})
    problems = [
        *_unknown(values, overlay, places),
        *_misnamed(environment.keys() - named),
        *_written_secrets(values, places),
    ]
    for path, _name, value in overlay:
        if tree.is_setting(path):
            _put(values, path, _typed(path, value))
    values = {key: value for key, value in values.items() if key not in {"root", "file"}}
    try:
        settings = Settings(**values, root=root, file=place)
    except ValidationError as error:
        for one in error.errors():
            if one["type"] != "extra_forbidden":
                problems.append(_invalid(one, places))  # noqa: PERF401
        raise SettingsInvalid(problems) from None
    if not problems:
        problems.extend(_exposed(settings, places))
        problems.extend(_armed(settings, environment))
        problems.extend(_unnamed(settings, places))
    if problems:
        raise SettingsInvalid(problems)
    return settings


class _Places:
    """Where a key was written: a line of the file, or a variable."""

    def __init__(self, file: str, text: str, variables: Mapping[tuple[str, ...], str]) -> None:
        self._file = file
        self._variables = variables
        self._lines: dict[tuple[str, ...], int] = {}
        section: tuple[str, ...] = ()
        for number, line in enumerate(text.splitlines(), 1):
            if heading := _SECTION.match(line):
                section = _parts(heading[1])
                self._keep(section, number)
            elif key := _KEY.match(line):
                self._keep((*section, *_parts(key[1])), number)

    def _keep(self, path: tuple[str, ...], number: int) -> None:
        for depth in range(len(path)):
            self._lines.setdefault(path[: depth + 1], number)

    def __call__(self, path: tuple[str, ...]) -> str:
        if path in self._variables:
            return self._variables[path]
        while path and path not in self._lines:
            path = path[:-1]
        return f"{self._file}:{self._lines[path]}" if path else self._file or "the settings"


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise SettingsInvalid([Problem(str(file), f"cannot be read ({error.strerror})")]) from None
    except UnicodeDecodeError:
        raise SettingsInvalid([Problem(str(file), "is not UTF-8 text")]) from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        # The parser says "at end of document" for the last line.
        where = f"{file}:{line[1] if line else len(text.splitlines())}"
        raise SettingsInvalid([Problem(where, f"is not TOML: {error}")]) from None


def _overlay(environment: Mapping[str, str]) -> list[tuple[tuple[str, ...], str, str]]:
    return [
        (_path(tuple(name.removeprefix(PREFIX).split("__"))), name, value)
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and "__" in name
    ]


def _path(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Keys are in small letters; what is free to name, such as a variable, is as it is written."""
    lower = tuple(part.lower() for part in parts)
    return (*lower[:-1], parts[-1]) if tree.inside(lower[:-1]) is str else lower


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        inner: object = values.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        values = cast("dict[str, Any]", inner)
    values[path[-1]] = value


def _typed(path: tuple[str, ...], value: str) -> Any:
    """A variable is a text; what it stands for follows from the key."""
    current = tree.default(path)
    if isinstance(current, tuple):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(current, bool):
        return {"true": True, "false": False}.get(value.lower(), value)
    if isinstance(current, (int, float)):
        try:
            return int(value) if isinstance(current, int) else float(value)
        except ValueError:
            return value
    return value


def _paths(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key that is written, as deep as settings go; of what is unknown, the first."""
    for key, value in values.items():
        path = (*above, key)
        holds = tree.inside(path)
        if holds is None or holds is str or not isinstance(value, dict):
            yield path
        else:
            yield from _paths(cast("dict[str, Any]", value), path)


def _unknown(
    values: Mapping[str, Any], overlay: list[tuple[tuple[str, ...], str, str]], places: _Places
) -> Iterator[Problem]:
    for path in (*_paths(values), *(path for path, _name, _value in overlay)):
        if path[0] in LATER or path[:2] in LATER:
            shown = f"[{path[0]}]" if path[0] in LATER else ".".join(path)
            yield Problem(places(path), f"{shown} is not available in this version; remove it")
        elif path[0] not in SECTIONS:
            shown = f"[{path[0]}]" if isinstance(values.get(path[0], {}), dict) else path[0]
            yield Problem(places(path), _suggest(shown, path[0], SECTIONS))
        elif len(path) > 1 and not tree.is_setting(path):
            yield Problem(places(path), _suggest(".".join(path), *tree.nearest(path)))


def _named(
    values: Mapping[str, Any], overlay: list[tuple[tuple[str, ...], str, str]]
) -> Iterator[str]:
    """The variables that settings name, such as `secret_env`: they may be called anything."""
    yield from _variables(values)
    yield from (value for path, _name, value in overlay if path[-1].endswith("_env"))
    yield from (value for path, _name, value in overlay if path[-2].endswith("_env"))


def _variables(values: Mapping[str, Any], *, named: bool = False) -> Iterator[str]:
    for key, value in values.items():
        is_named = named or key.endswith("_env")
        if isinstance(value, dict):
            yield from _variables(cast("dict[str, Any]", value), named=is_named)
        elif is_named and isinstance(value, str):
            yield value


def _misnamed(names: AbstractSet[str]) -> Iterator[Problem]:
    """`TOOLGATE_SERVER_PORT` means nothing to us, and something to whoever wrote it."""
    for name in sorted(names - ELSEWHERE):
        if not name.startswith(PREFIX):
            continue
        rest = name.removeprefix(PREFIX)
        section, _, key = rest.partition("_")
        # `TOOLGATE_PORT`: a key without its section.
        holds = [one for one in SECTIONS if tree.is_setting((one, rest.lower()))]
        if holds and section.lower() not in SECTIONS:
            meant = " or ".join(f"{PREFIX}{one.upper()}__{rest}" for one in holds)
            yield Problem(name, f"is not a setting; did you mean {meant}, with its section?")
        elif section.lower() in SECTIONS and not key.startswith("_"):
            meant = f"{PREFIX}{section}__{key}"
            yield Problem(name, f"is not a setting; did you mean {meant}, with two underscores?")


def _written_secrets(values: Mapping[str, Any], places: _Places) -> Iterator[Problem]:
    """Secrets are named by the environment, never written in the file."""
    for path in _paths(values):
        url: Any = values
        for part in path:
            url = url[part]
        if path[-1].endswith("url") and isinstance(url, str) and _PASSWORD.match(url):
            variable = PREFIX + "__".join(path).upper()
            yield Problem(
                places(path),
                f"{'.'.join(path)} holds a password; leave it out here and set {variable}",
            )


def _suggest(shown: str, given: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
    return f"{shown} is not a setting; {hint}"


def _invalid(error: Any, places: _Places) -> Problem:
    path = tuple(str(part) for part in error["loc"] if not isinstance(part, int))
    message = error["msg"].removeprefix("Value error, ")
    if not path:
        # What is wrong between two sections begins with the name of one of its keys.
        return Problem(places(tuple(message.partition(" ")[0].split("."))), message)
    shown = ".".join(path)
    given = error["input"]
    # An address can hold a password, above all one that is written wrongly.
    secret = "url" in path[-1] or (isinstance(given, str) and "://" in given)
    # So can what stands where the name of a variable should.
    secret = secret or any(part.endswith("_env") or part == "secret" for part in path)
    value = "" if secret or isinstance(given, dict) else f" (it is {given!r})"
    return Problem(places(path), f"{shown}: {message[:1].lower()}{message[1:]}{value}")


def _unnamed(settings: Settings, places: _Places) -> Iterator[Problem]:
    """Secrets are named. What names none may be one itself: it is not repeated."""
    known = settings.providers.http.secrets
    for name, server in settings.mcp.servers.items():
        if server.oauth.secret and server.oauth.secret not in known:
            path = ("mcp", "servers", name, "oauth", "secret")
            yield Problem(
                places(path),
                f"{'.'.join(path)} names no secret of [providers.http.secrets]; write the name of "
                "one, and not its value",
            )


def _exposed(settings: Settings, places: _Places) -> Iterator[Problem]:
    """Beyond this machine only on purpose: whoever says the public address has thought of it."""
    server = settings.server
    if server.public_url or server.host == "localhost":
        return
    try:
        loopback = ipaddress.ip_address(server.host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        yield Problem(
            places(("server", "host")),
            f"server.host {server.host!r} can be reached from other machines; set "
            "server.public_url to the address callers use, or listen on 127.0.0.1",
        )


def _armed(settings: Settings, environment: Mapping[str, str]) -> Iterator[Problem]:
    """What tests kill a process by has no place where others rely on it."""
    if settings.server.public_url and environment.get(crash.VARIABLE):
        yield Problem(
            crash.VARIABLE,
            "is for tests and ends the process in the middle of a call; unset it where callers "
            "come by server.public_url",
        )
