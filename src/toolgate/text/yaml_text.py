"""YAML from the parser's events, with the rules of YAML 1.2.

`no` is a text, and there are no aliases, tags, merge keys or duplicate keys, so a small file cannot
become a large value. A file may hold only so many values: what is larger is better off as JSON.
"""

import math
import re
from typing import Any, NamedTuple, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from toolgate.text.refusal import Path, Refusal

MAX_BYTES = 2 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 30_000
_NUMBER = re.compile(r"[-+.0-9]")
_INT = re.compile(r"[-+]?[0-9]{1,400}\Z")
_OTHER_INT = re.compile(r"0o[0-7]{1,100}\Z|0x[0-9a-fA-F]{1,100}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# Without libyaml the same events come from a slower parser.
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Limits(NamedTuple):
    """How much YAML is read: it takes many times as long as JSON."""

    most: int
    values: int


def read(text: str, limits: Limits) -> Any:
    """The document's value."""
    if len(text) > limits.most:
        raise Refusal(f"is larger than {limits.most:,} bytes of YAML", "Split it, or use JSON.")
    return _built(text, _Builder(limits))


class Lines:
    """The line of each part. Filled by reading the text again, the first time one is asked for."""

    def __init__(self, text: str, limits: Limits) -> None:
        self._text = text
        self._limits = limits
        self._lines: dict[Path, int] | None = None

    def __call__(self, path: Path) -> int | None:
        if self._lines is None:
            placed = _Placed(self._limits)
            _built(self._text, placed)
            self._lines = placed.lines
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)


def _built(text: str, builder: "_Builder") -> Any:
    parser: Any = None
    try:
        # The slower parser looks at the characters before it is asked for anything.
        parser = _PARSER(text)
        while (event := parser.get_event()) is not None:
            builder.take(event)
    except yaml.YAMLError as error:
        raise _not_yaml(text, error) from None
    finally:
        if parser is not None:
            parser.dispose()
    return builder.root[0] if builder.root else None


def _not_yaml(text: str, error: yaml.YAMLError) -> Refusal:
    mark, position = getattr(error, "problem_mark", None), getattr(error, "position", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it breaks off"
    line = None
    if mark is not None:
        line = mark.line + 1
    elif isinstance(position, int):
        line = text.encode().count(b"\n", 0, position) + 1
    return Refusal(f"is not YAML: {what}", "Correct the syntax.", line)


class _Builder:
    """Events to values, without recursion."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.values
        self.root: list[Any] = []
        self._holder: Any = self.root
        self._mapping = False
        self._outer: list[tuple[Any, bool]] = []
        # A mapping's key that waits for its value.
        self._key: str | None = None
        self._values = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        kind = cast("type[Any]", type(event))
        if kind is ScalarEvent:
            if self._mapping and self._key is None:
                self._key = self._name(event)
                return
            self._put(event, self._scalar(event))
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            self._open(event, {} if kind is MappingStartEvent else [])
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            self._holder, self._mapping = self._outer.pop()
            # A collection's key was used when the collection was put in its place.
            self._key = None
        elif kind is AliasEvent:
            raise _no(event, f"uses the alias *{event.anchor[:60]}", "Write the value out.")
        elif kind is DocumentStartEvent:
            self._documents += 1
            if self._documents > 1:
                raise _no(event, "holds a second document", "Keep one document a file.")

    def _open(self, event: Any, value: Any) -> None:
        if self._mapping and self._key is None:
            raise _no(event, "has a key that is not a text", "Use a plain key.")
        if event.tag is not None and event.tag != "!":
            raise _no(event, f"uses the tag {event.tag[:60]!r}", "Write a plain value.")
        if len(self._outer) >= MAX_DEPTH:
            raise _no(event, f"is nested deeper than {MAX_DEPTH} levels", "Flatten it.")
        self._put(event, value)
        self._outer.append((self._holder, self._mapping))
        self._holder, self._mapping = value, isinstance(value, dict)

    def _put(self, event: Any, value: Any) -> None:
        self._count(event)
        if self._mapping:
            self._holder[self._key] = value
            self._key = None
        else:
            self._holder.append(value)

    def _count(self, event: Any) -> None:
        self._values += 1
        if self._values > self._most:
            what = f"holds more than {self._most:,} keys and values"
            raise _no(event, what, "Split it, or use JSON.")

    def _name(self, event: Any) -> str:
        self._count(event)
        name = cast("str", event.value)
        if event.tag is not None and event.tag != "!":
            raise _no(event, f"uses the tag {event.tag[:60]!r}", "Write a plain key.")
        if name == "<<" and event.implicit[0]:
            raise _no(event, "uses a merge key <<", "Write the fields out.")
        if name in self._holder:
            raise _no(event, f"has the key {name[:60]!r} twice", "Keep one of them.")
        return name

    def _scalar(self, event: Any) -> Any:
        text = cast("str", event.value)
        if event.tag is not None and event.tag != "!":
            raise _no(event, f"uses the tag {event.tag[:60]!r}", "Write a plain value.")
        if not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if not _NUMBER.match(text):
            return text
        number = _number(text)
        if isinstance(number, float) and not math.isfinite(number):
            shown = text[:40]
            raise _no(event, f"holds {shown}, a number that JSON has no word for", "Change it.")
        return number


class _Placed(_Builder):
    """The same, noting where each part stands."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.lines: dict[Path, int] = {}
        self._path: Path = ()
        self._paths: list[Path] = []

    def take(self, event: Any) -> None:
        if type(event) is MappingEndEvent or type(event) is SequenceEndEvent:
            self._path = self._paths.pop()
        super().take(event)

    def _name(self, event: Any) -> str:
        name = super()._name(event)
        self.lines[(*self._path, name)] = event.start_mark.line + 1
        return name

    def _open(self, event: Any, value: Any) -> None:
        here = self._here()
        super()._open(event, value)
        self._paths.append(self._path)
        self._path = here

    def _put(self, event: Any, value: Any) -> None:
        self.lines.setdefault(self._here(), event.start_mark.line + 1)
        super()._put(event, value)

    def _here(self) -> Path:
        if self._holder is self.root:
            return ()
        part = self._key if self._mapping else len(self._holder)
        return (*self._path, cast("str | int", part))


def _number(text: str) -> Any:
    """YAML 1.2 core rules. What is not clearly a number is a text."""
    if _INT.match(text):
        return int(text)
    if _OTHER_INT.match(text):
        return int(text, 0)
    if _FLOAT.match(text):
        return float(text)
    return math.nan if _NOT_FINITE.match(text) else text


def _no(event: Any, message: str, write: str) -> Refusal:
    return Refusal(message, write, event.start_mark.line + 1)
