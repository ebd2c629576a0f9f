"""JSON, YAML and TOML, read by their parsers: what is wrong with a text, without building from it.

This runs in a worker of ours: a text that a parser chokes on takes nothing else with it.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import yaml

from toolgate.tools.code.finding import finding

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_MOST = 1_000
# Deeper than people write; the parser's time grows with the square of the depth.
_DEEPEST = 200


def checked(*, language: str, text: str) -> list[dict[str, Any]]:
    """What is wrong: at most one error, or keys that stand twice."""
    try:
        return _CHECKS[language](text)
    except RecursionError:
        message = "it is nested too deeply to be read"
        return [finding(line=1, column=1, code=f"{language}-depth", message=message)]


def _json(text: str) -> list[dict[str, Any]]:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return [
            finding(line=error.lineno, column=error.colno, code="json-syntax", message=error.msg)
        ]
    # What is JSON is nearly always YAML too, whose parser says where keys are.
    return [one for one in _yaml(text) if one["code"] == "duplicate-key"]


def _toml(text: str) -> list[dict[str, Any]]:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        message = _PLACE.sub("", str(error)).strip()
        lines = text.split("\n")
        # Without a place it is the end of the document.
        line, column = (int(place[1]), int(place[2])) if place else (len(lines), len(lines[-1]) + 1)
        return [finding(line=line, column=column, code="toml-syntax", message=message)]
    return []


def _yaml(text: str) -> list[dict[str, Any]]:
    keys = _Keys()
    try:
        # Events only: no value is made, no alias is followed, no tag means anything.
        parser: Any = yaml.CSafeLoader(text)
        while parser.check_event():
            keys.see(parser.get_event())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        said = " ".join(filter(None, (error.context, error.problem))) or "it cannot be read"
        return [
            *keys.found,
            finding(line=line, column=column, code="yaml-syntax", message=said),
        ]
    except yaml.YAMLError as error:
        said = str(error).splitlines()[0]
        return [finding(line=1, column=1, code="yaml-syntax", message=said)]
    return keys.found


class _Keys:
    """Follows events, and finds keys that a mapping has twice."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        # For each open mapping its keys and whether a key comes next; nothing for a sequence.
        self._open: list[list[Any] | None] = []

    def see(self, event: Any) -> None:
        if isinstance(event, yaml.CollectionStartEvent):
            self._node(None)
            if len(self._open) >= _DEEPEST:
                raise RecursionError
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            self._open.append([set[str](), True] if is_mapping else None)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            self._node(event)

    def _node(self, event: Any) -> None:
        around = self._open[-1] if self._open else None
        if around is None:
            return
        keys, is_key = around
        around[1] = not is_key
        if not is_key or not isinstance(event, yaml.ScalarEvent):
            return
        # More than one mapping may be merged into another.
        if event.value in keys and event.value != "<<" and len(self.found) < _MOST:
            mark: Any = event.start_mark
            self.found.append(
                finding(
                    line=mark.line + 1,
                    column=mark.column + 1,
                    code="duplicate-key",
                    message=f"the key {event.value[:100]!r} stands twice here; one of them is lost",
                )
            )
        keys.add(event.value)


_CHECKS: Mapping[str, Callable[[str], list[dict[str, Any]]]] = {
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
}
