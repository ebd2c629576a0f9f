"""JSON: strict about what it says twice or cannot mean, and lines by walking the text again."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from toolgate.text.refusal import Path, Refusal

_SPACE = re.compile(r"[ \t\n\r]*")
# A text without an end goes on to that of the document: it is not looked for from each quote anew.
_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*+")(?=\s*+:)|"(?:[^"\\]|\\.)*+"?|[{}]|[-+.\w]++', re.DOTALL
)
_SEARCHED = 256 * 1024


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
    """Grammatical, and still not to be taken: a key said twice, or a number that is none."""

    def __init__(self, message: str, write: str, *, key: str = "", token: str = "") -> None:
        super().__init__(message)
        self.write = write
        self._key = key
        self._token = token

    def line(self, text: str) -> int | None:
        """Where it stands. A large text is not looked through again."""
        if len(text) > _SEARCHED:
            return None
        objects: list[set[str]] = []
        for found in _TOKEN.finditer(text):
            token = found[0]
            if token == "{":  # noqa: S105
                objects.append(set())
            elif token == "}":  # noqa: S105
                objects.pop()
            elif (found["key"] and self._twice(found["key"], objects[-1])) or (
                self._token == token
            ):
                return text.count("\n", 0, found.start()) + 1
        return None

    def _twice(self, written: str, seen: set[str]) -> bool:
        key = json.loads(written)
        again = key == self._key and key in seen
        seen.add(key)
        return again


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise _Odd(f"has the key {key[:60]!r} twice", "Keep one of them.", key=key)
    return found


def _number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        shown = f"holds {digits[:40]}, a number too large"
        raise _Odd(shown, "Write a smaller one.", token=digits)
    return number


def _constant(name: str) -> Any:
    raise _Odd(f"holds {name}, which JSON has no word for", "Write a number.", token=name)


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
