"""YAML and JSON as plain values, with the line of everything; hostile text is refused early.

YAML is read from the C parser's events with the rules of YAML 1.2: `no` is a text, and there are no
aliases, tags, merge keys or duplicate keys, so a small file cannot become a large value.
"""

import math
import re
from typing import Any, Protocol, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from toolgate.errors import InvalidSpecs
from toolgate.spec.problem import Problem

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 64
_INT = re.compile(r"[-+]?[0-9]{1,400}\Z")
_OTHER_INT = re.compile(r"0o[0-7]{1,100}\Z|0x[0-9a-fA-F]{1,100}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# Without libyaml the same events come from a slower parser.
_PARSER: Any = getattr(yaml, "CParser", yaml.Loader)
Path = tuple[str | int, ...]


class Text:
    """A parsed document: its value, and where each part stands."""

    def __init__(self, value: Any, lines: dict[Path, int]) -> None:
        self.value = value
        self._lines = lines

    def line_of(self, path: Path) -> int | None:
        """The line of this part, or of the nearest one around it."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)


def parse(raw: bytes, *, file: str) -> Text:
    """A YAML or JSON document (JSON is YAML). Anything odd is an `InvalidSpecs` that says where."""
    if len(raw) > MAX_BYTES:
        size = f"{len(raw):,} bytes"
        raise _refused(file, None, f"is {size}; at most {MAX_BYTES:,} are read", "Split it.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _refused(file, line, "is not UTF-8 text", "Save it as UTF-8.") from None
    parser: Any = _PARSER(text)
    try:
        return _Builder(file).document(parser)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or "it cannot be parsed"
        line = None if mark is None else mark.line + 1
        raise _refused(file, line, f"is not YAML or JSON: {what}", "Correct the syntax.") from None
    except (ValueError, RecursionError, OverflowError) as error:
        raise _refused(file, None, f"is not YAML or JSON: {error}", "Correct it.") from None
    finally:
        parser.dispose()


class _Parser(Protocol):
    def check_event(self, *choices: type[Event]) -> bool: ...
    def get_event(self) -> Event: ...


class _Builder:
    """Events to values, without recursion."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: dict[Path, int] = {}

    def document(self, parser: _Parser) -> Text:
        root: list[Any] = []
        documents = 0
        # Each open collection: the path to it, the value, and a mapping's key that waits.
        open_: list[tuple[Path, Any, list[str]]] = [((), root, [])]
        event = parser.get_event()
        while event is not None:  # pyright: ignore[reportUnnecessaryComparison]
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._no(event, "holds a second document", "Keep one document a file.")
            elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
                open_.pop()
            elif isinstance(
                event, (MappingStartEvent, SequenceStartEvent, ScalarEvent, AliasEvent)
            ):
                self._node(event, open_)
            event = parser.get_event()
        return Text(root[0] if root else None, self._lines)

    def _node(self, event: Any, open_: list[tuple[Path, Any, list[str]]]) -> None:
        path, holder, key = open_[-1]
        if isinstance(event, AliasEvent):
            raise self._no(event, f"uses the alias *{event.anchor}", "Write the value out.")
        if isinstance(holder, dict) and not key:
            key.append(self._key(event, cast("dict[str, Any]", holder)))
            self._lines[(*path, key[0])] = event.start_mark.line + 1
            return
        value = self._value(event)
        if isinstance(holder, dict):
            here: Path = (*path, key.pop())
            holder[here[-1]] = value
        else:
            # The outermost list only catches the document's one value.
            here = (*path, len(cast("list[Any]", holder))) if len(open_) > 1 else ()
            cast("list[Any]", holder).append(value)
            self._lines.setdefault(here, event.start_mark.line + 1)
        if not isinstance(event, ScalarEvent):
            if len(open_) > MAX_DEPTH:
                raise self._no(event, f"is nested deeper than {MAX_DEPTH} levels", "Flatten it.")
            open_.append((here, value, []))

    def _key(self, event: Any, holder: dict[str, Any]) -> str:
        if not isinstance(event, ScalarEvent):
            raise self._no(event, "has a key that is not a text", "Use a plain key.")
        name = event.value
        if name == "<<":
            raise self._no(event, "uses a merge key <<", "Write the fields out.")
        if name in holder:
            raise self._no(event, f"has the key {name[:60]!r} twice", "Keep one of them.")
        return name

    def _value(self, event: Any) -> Any:
        if event.tag is not None and event.tag != "!":
            raise self._no(event, f"uses the tag {event.tag[:60]!r}", "Write a plain value.")
        if isinstance(event, MappingStartEvent):
            return {}
        if isinstance(event, SequenceStartEvent):
            return []
        text = cast("str", event.value)
        return _scalar(text) if event.implicit[0] else text

    def _no(self, event: Any, message: str, write: str) -> InvalidSpecs:
        return _refused(self._file, event.start_mark.line + 1, message, write)


def _scalar(text: str) -> Any:
    """YAML 1.2 core rules. What is not clearly something else is a text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text)
    if _OTHER_INT.match(text):
        return int(text, 0)
    if _FLOAT.match(text):
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"the number {text[:40]} is too large")
        return number
    return text


def _refused(file: str, line: int | None, message: str, write: str) -> InvalidSpecs:
    return InvalidSpecs([Problem(file=file, line=line, message=message, write=write)])
