"""JSON: strict about what it says twice or cannot mean, and lines by walking the text again."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from toolgate.sources.refusal import Path, Refusal

_SPACE = re.compile(r"[ \t\n\r]*")


class NotJson(Refusal):
    """The text breaks JSON's grammar; it may be YAML."""


def read(text: str) -> Any:
    """The document's value."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        what = f"is not JSON: {error.msg.lower()}"
        raise NotJson(what, "Correct the syntax.", error.lineno) from None
    except RecursionError:
        raise Refusal("is nested far too deep", "Flatten it.") from None
    except _Odd as odd:
        raise Refusal(str(odd), odd.write, odd.line(text)) from None
    except ValueError:
        raise Refusal("holds a number of thousands of digits", "Write a smaller one.") from None


class _Odd(Exception):
    """Grammatical, and still not to be taken. `around` is what stands beside it in the text."""

    def __init__(self, message: str, write: str, around: str) -> None:
        super().__init__(message)
        self.write = write
        self.around = around

    def line(self, text: str) -> int | None:
        """The line, where the text has it only once or on one line."""
        lines = {text.count("\n", 0, one.start()) + 1 for one in _few(self.around, text)}
        return max(lines) if len(lines) in {1, 2} else None


def _few(around: str, text: str) -> Iterator[re.Match[str]]:
    for number, found in enumerate(re.finditer(re.escape(around), text)):
        if number == 3:
            return
        yield found


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise _Odd(f"has the key {key[:60]!r} twice", "Keep one of them.", json.dumps(key))
    return found


def _number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _Odd(f"holds {digits[:40]}, a number too large", "Write a smaller one.", digits)
    return number


def _constant(name: str) -> Any:
    raise _Odd(f"holds {name}, which JSON has no word for", "Write a number.", name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_number, parse_constant=_constant
)


class Lines:
    """The line of a part, found by walking to it. What was passed on the way is remembered."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._skip = json.JSONDecoder().raw_decode
        # Each container that was walked: where its members start, and the rest of the walk.
        self._known: dict[int, tuple[dict[str | int, tuple[int, int]], Iterator[Any]]] = {}

    def __call__(self, path: Path) -> int | None:
        shown = value = self._after(0)
        for part in path:
            found = self._member(value, part)
            if found is None:
                break
            shown, value = found
        return self._text.count("\n", 0, shown) + 1

    def _member(self, at: int, part: str | int) -> tuple[int, int] | None:
        if at not in self._known:
            self._known[at] = ({}, self._walk(at))
        members, rest = self._known[at]
        if part not in members:
            for key, shown, value in rest:
                members[key] = (shown, value)
                if key == part:
                    break
        return members.get(part)

    def _walk(self, at: int) -> Iterator[tuple[str | int, int, int]]:
        """Each member of the container at this place: its key, where it and its value start."""
        opening, text = self._text[at : at + 1], self._text
        if opening not in {"{", "["}:
            return
        at, index = self._after(at + 1), 0
        while text[at] not in "]}":
            key: str | int = index
            shown = at
            if opening == "{":
                key, end = self._skip(text, at)
                at = self._after(self._after(end) + 1)
            yield key, shown, at
            _, end = self._skip(text, at)
            at = self._after(end)
            if text[at] == ",":
                at = self._after(at + 1)
            index += 1

    def _after(self, at: int) -> int:
        """The first place from here that is not white space."""
        found = _SPACE.match(self._text, at)
        return at if found is None else found.end()
