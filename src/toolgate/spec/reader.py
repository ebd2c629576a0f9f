"""From what a file says to specs: all of it, or every problem at once."""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from toolgate.errors import InvalidSpecs
from toolgate.spec import names
from toolgate.spec.checks import contradictions
from toolgate.spec.fields import FIELDS, kind
from toolgate.spec.layouts import Native, to_native
from toolgate.spec.problem import Problem
from toolgate.spec.tool import ANYTHING, Origin, ToolSpec, usual_execution

MAX_PROBLEMS = 200
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
LineOf = Callable[[tuple[str | int, ...]], int | None]


def read_tools(document: Any, *, file: str, origin: Origin, line_of: LineOf) -> list[ToolSpec]:
    """The specs of a document `{tools: […]}` or a bare list, or `InvalidSpecs` with everything."""
    reader = _Reader(file=file, origin=origin, line_of=line_of)
    try:
        specs = reader.document(document)
    except _Enough:
        specs = []
    if reader.problems:
        raise InvalidSpecs(reader.problems)
    return specs


def read_tool(given: Mapping[str, Any], *, origin: Origin, file: str = "") -> ToolSpec:
    """One spec from its fields, or `InvalidSpecs`."""
    return read_tools(
        [dict(given)], file=file or str(origin), origin=origin, line_of=lambda _path: None
    )[0]


class _Enough(Exception):
    """So much is wrong that reading on helps nobody."""


class _Reader:
    def __init__(self, *, file: str, origin: Origin, line_of: LineOf) -> None:
        self.file = file
        self.origin = origin
        self.line_of = line_of
        self.problems: list[Problem] = []

    def document(self, document: Any) -> list[ToolSpec]:
        at: tuple[str | int, ...] = ()
        if isinstance(document, dict):
            fields = cast("dict[str, Any]", document)
            for key in fields:
                # What a tool file was made from, for the command that makes it again.
                if key not in {"tools", "imported"}:
                    self._complain(
                        (key,),
                        f"{str(key)[:60]!r} is no key of a tool file",
                        "A tool file has one key: tools.",
                    )
            document, at = fields.get("tools"), ("tools",)
        if not isinstance(document, list):
            found = "nothing" if document is None else kind(document)
            self._complain(
                at, f"holds {found} where a list of tools should be", "Write tools: […]."
            )
            return []
        seen: dict[str, int] = {}
        specs: list[ToolSpec] = []
        for index, item in enumerate(cast("list[Any]", document)):
            spec = self._tool(item, (*at, index))
            if spec is None:
                continue
            if spec.name in seen:
                self._complain(
                    (*at, index),
                    f"is defined twice, as entries {seen[spec.name] + 1} and {index + 1}",
                    "Rename or remove one.",
                    tool=spec.name,
                )
            seen[spec.name] = index
            specs.append(spec)
        return specs

    def _tool(self, item: Any, at: tuple[str | int, ...]) -> ToolSpec | None:
        if not isinstance(item, dict):
            self._complain(
                at,
                f"is {kind(item)}, not a tool",
                "Write - name: NAME and its fields.",
                tool=_entry(at),
            )
            return None
        given = cast("dict[Any, Any]", item)
        if not all(isinstance(key, str) for key in given):
            self._complain(
                at, "has a key that is not a text", "Put quotes around the key.", tool=_entry(at)
            )
            return None
        native = to_native(given)
        name: Any = native.fields.get("name")
        label = _printable(name[:80]) if isinstance(name, str) and name else _entry(at)
        for first, second in native.twice:
            self._complain(
                (*at, *_path(second)),
                f"says the same as {first}",
                "Keep one of them.",
                tool=label,
                field=second,
            )
        values = self._fields(native, label, at)
        unread = native.fields.keys() - values.keys()
        if "name" not in native.fields:
            self._complain(
                at, "is missing", f"Write {FIELDS['name'].example}.", tool=label, field="name"
            )
        why = names.kept(str(values.get("name", "")), self.origin.kind, self.origin.where)
        if why:
            write = "Write a name without that beginning."
            self._complain((*at, "name"), why, write, tool=label, field="name")
        # Without a name of its own it can be checked, but is like no other.
        known: dict[str, Any] = {"name": _entry(at), "origin": self.origin} | values
        if "provider" not in known and "builtin" in known.get("config", ANYTHING).value():
            known["provider"] = "builtin"
        if "provider" in known:
            known.setdefault("execution", usual_execution(known["provider"]))
        spec = ToolSpec(**known)
        for found in contradictions(spec, effect_given=native.effect_given):
            if not unread.isdisjoint((found.field, *found.others)):
                continue
            shown = native.names.get(found.field, found.field)
            self._complain(
                (*at, *_path(shown)), found.message, found.write, tool=label, field=shown
            )
        return spec

    def _fields(self, native: Native, label: str, at: tuple[str | int, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in native.fields.items():
            shown = native.names.get(key, key)
            field = FIELDS.get(key)
            if field is None:
                self._complain(
                    (*at, *_path(shown)),
                    "is not a known field",
                    _nearest(key),
                    tool=label,
                    field=shown,
                )
                continue
            try:
                values[key] = field.read(value)
            except ValueError as error:
                message = str(error)
                # A reader of an object names the part: ".attempts is 0; …".
                inner, _, message = (
                    message.partition(" ") if message.startswith(".") else ("", "", message)
                )
                self._complain(
                    (*at, *_path(shown)),
                    message,
                    f"Write for example {field.example.removesuffix('.')}.",
                    tool=label,
                    field=shown + inner,
                )
        return values

    def _complain(
        self,
        at: tuple[str | int, ...],
        message: str,
        write: str,
        *,
        tool: str = "",
        field: str = "",
    ) -> None:
        self.problems.append(
            Problem(
                file=self.file,
                line=self.line_of(at),
                tool=tool,
                field=_printable(field),
                message=message,
                write=write,
            )
        )
        if len(self.problems) == MAX_PROBLEMS:
            raise _Enough


def _entry(at: tuple[str | int, ...]) -> str:
    return f"entry {cast('int', at[-1]) + 1}"


def _printable(text: str) -> str:
    """A name from a file goes to logs and terminals: nothing in it may steer them."""
    shown = _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)
    return shown if len(shown) <= 200 else shown[:199] + "…"


def _path(shown: str) -> tuple[str, ...]:
    return tuple(shown.split("."))


def _nearest(key: str) -> str:
    close = difflib.get_close_matches(key[:64], FIELDS, n=1)
    return f"Did you mean {close[0]}?" if close else "Remove it; see the reference of tool files."
