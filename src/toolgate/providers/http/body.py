"""What a request carries: JSON, a form, parts, text or bytes, made from arguments."""

import os
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, cast

import orjson

from toolgate.providers.http import read
from toolgate.providers.http.address import Unfit
from toolgate.providers.http.style import STYLES, Style, pairs, usual
from toolgate.providers.http.template import MISSING, Argument, Filling, filling, named, shown

_MEDIA = re.compile(r"[\w.+-]+/[\w.+*-]+(?: *; *[\w.-]+=(?:[\w.+-]+|\"[\w .+/-]*\"))*\Z", re.ASCII)
_BREAKS = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A", "\0": "%00"})
_USUAL = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "multipart": "multipart/form-data",
    "text": "text/plain; charset=utf-8",
    "binary": "application/octet-stream",
}
_SOURCES = ("argument", "arguments", "template")
Args = Mapping[str, Any]


class Body(NamedTuple):
    """How a body is made, and what it is called."""

    source: Callable[[Args], Any]
    write: Callable[[Any], tuple[bytes, str]]
    arguments: frozenset[str] | None  # None: all that are used nowhere else

    def written(self, args: Args) -> tuple[bytes, str] | None:
        """The bytes and their media type, or `None` where there is nothing to send."""
        value = self.source(args)
        return None if value is MISSING else self.write(value)


def body(value: Any, known: Collection[str] | None) -> Body:
    """Read `body` of a config."""
    given = read.only(
        value,
        {
            "kind": read.word(*_USUAL),
            "argument": read.text,
            "arguments": lambda found: [read.text(one) for one in read.listed(found, 1_000)],
            "template": lambda found: found,
            "media_type": media_type,
            "encoding": read.fields,
            "files": lambda found: [read.text(one) for one in read.listed(found, 100)],
        },
    )
    kind = given.get("kind", "json")
    said = [one for one in _SOURCES if one in given]
    if len(said) > 1:
        raise ValueError(f"has {' and '.join(said)}; keep one of them")
    if kind in {"text", "binary"} and "argument" not in given and "template" not in given:
        raise ValueError(f"of kind {kind} is one text; write argument: NAME")
    if kind == "multipart" and "media_type" in given and "boundary" in given["media_type"]:
        raise ValueError(".media_type has a boundary, which is made anew for each request")
    if "files" in given and kind != "multipart":
        raise ValueError(".files are parts of a multipart; write kind: multipart")
    source, names = _source(given, known)
    return Body(source, _writer(kind, given), names)


def rest(names: Collection[str]) -> Body:
    """All arguments that nothing else takes, as a JSON object."""
    usual_type = _USUAL["json"]
    # A tool that has no argument left for it sends none.
    nothing: Any = {} if names else MISSING

    def source(args: Args) -> Any:
        return args or nothing

    def write(value: Any) -> tuple[bytes, str]:
        return _json(value), usual_type

    return Body(source, write, None)


def media_type(value: Any) -> str:
    given = read.text(value)
    if not _MEDIA.match(given):
        raise ValueError(f"is {given[:60]!r}, which is no media type such as application/json")
    return given


def _source(
    given: Mapping[str, Any], known: Collection[str] | None
) -> tuple[Callable[[Args], Any], frozenset[str] | None]:
    if "argument" in given:
        one = read.at(".argument", lambda: named(given["argument"], known))
        return one.of, frozenset({one.name})
    if "arguments" in given:
        several = tuple(
            read.at(".arguments", lambda name=name: named(name, known))
            for name in given["arguments"]
        )
        return lambda args: _object(several, args), frozenset(one.name for one in several)
    if "template" in given:
        made: Filling = read.at(".template", lambda: filling(given["template"], known))
        return made.of, frozenset(one.name for one in made.arguments)
    return lambda args: args, None


def _object(several: tuple[Argument, ...], args: Args) -> dict[str, Any]:
    found = ((one.name, one.of(args)) for one in several)
    return {name: value for name, value in found if value is not MISSING}


def _writer(kind: str, given: Mapping[str, Any]) -> Callable[[Any], tuple[bytes, str]]:
    named_so = given.get("media_type") or _USUAL[kind]
    if kind == "json":
        return lambda value: (_json(value), named_so)
    if kind == "text":
        return lambda value: (shown(value).encode(), named_so)
    if kind == "binary":
        name = given.get("argument", "")
        return lambda value: (_bytes(name, value), named_so)
    styles = {
        name: read.at(f".encoding.{name}", lambda one=one: _style(one))
        for name, one in given.get("encoding", {}).items()
    }
    if kind == "form":
        return lambda value: (_form(value, styles), named_so)
    files = frozenset(given.get("files", ()))
    return lambda value: _multipart(value, files, named_so)


def _style(value: Any) -> Style:
    given = read.only(value, {"style": read.word(*STYLES["query"]), "explode": read.flag})
    name = given.get("style", "form")
    return Style(name, given.get("explode", name == "form"))


def _form(value: Any, styles: Mapping[str, Style]) -> bytes:
    written: list[tuple[str, str]] = []
    for name, of in _fields(value):
        written += pairs(name, of, styles.get(name) or usual(of))
    return "&".join(f"{name}={of}" for name, of in written).encode()


def _multipart(value: Any, files: frozenset[str], named_so: str) -> tuple[bytes, str]:
    boundary = os.urandom(16).hex()
    parts: list[bytes] = []
    for name, of in _fields(value):
        if of is None:
            continue
        several = isinstance(of, list) and (name in files or usual(of).name == "form")
        items: list[Any] = cast("list[Any]", of) if several else [of]
        for one in items:
            head, content = _file(name, one) if name in files else _part(one)
            shown_name = name.translate(_BREAKS)
            parts.append(
                f'--{boundary}\r\nContent-Disposition: form-data; name="{shown_name}"{head}'
                "\r\n\r\n".encode()
                + content
                + b"\r\n"
            )
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), f"{named_so}; boundary={boundary}"


def _part(value: Any) -> tuple[str, bytes]:
    if isinstance(value, (dict, list)):
        return "\r\nContent-Type: application/json", _json(value)
    return "", shown(value).encode()


def _file(name: str, value: Any) -> tuple[str, bytes]:
    """A file is its base64, or an object that says its name and kind too."""
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {"base64": value}
    filename = str(given.get("filename") or name).translate(_BREAKS)
    kind = given.get("media_type") or "application/octet-stream"
    if not isinstance(kind, str) or not _MEDIA.match(kind):
        raise Unfit(name, "has a media_type that is none, such as image/png")
    if isinstance(given.get("text"), str):
        content = given["text"].encode()
    else:
        content = _bytes(name, given.get("base64"))
    return f'; filename="{filename}"\r\nContent-Type: {kind}', content


def _fields(value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise Unfit("", "must be an object: the body is a form")
    return list(cast("dict[str, Any]", value).items())


def _bytes(name: str, value: Any) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (NotBase64, ValueError, TypeError):
        raise Unfit(name, "must be base64") from None


def _json(value: Any) -> bytes:
    return orjson.dumps(value)
