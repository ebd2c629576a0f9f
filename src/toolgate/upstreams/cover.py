"""What a server was given in secret, taken out of all that it says."""

from base64 import b64decode
from binascii import Error
from collections.abc import Iterable, Iterator
from typing import Any, cast

import orjson

from toolgate.net.hidden import forms
from toolgate.spec.secret import HIDDEN, LEAST_TEXT

_SPOKEN = ("result", "error", "params")


class Cover:
    """Over the values of one server. Without any, it costs nothing."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        # What is no text cannot stand in JSON either.
        known = (value.encode("utf-8", "replace").decode() for value in values)
        parts = {part for value in known for part in _parts(value)}
        self._raw = forms(parts)
        self._texts = tuple(one.decode() for one in self._raw)
        self.is_empty = not self._raw
        # Whether JSON writes one of them with backslashes, and in a text in a text with more.
        self._is_escaped = any(orjson.dumps(one)[1:-1] != one.encode() for one in parts)

    def over(self, said: Any, raw: bytes) -> Any:
        """A message without any of them; `raw` is how it came. Nearly all are handed back as is."""
        if type(said) is not dict:
            return said
        message = cast("dict[str, Any]", said)
        if not self._is_in(message, raw):
            return message
        found = {name: self._without(message[name]) for name in _SPOKEN if name in message}
        return message | found

    def _is_in(self, said: Any, raw: bytes) -> bool:
        if self._is_escaped and b"\\" in raw:
            return True
        if b"\\u" in raw or b"\\/" in raw:
            # Written in another way, it is the same secret.
            raw = orjson.dumps(said)
        return any(one in raw for one in self._raw)

    def _without(self, value: Any) -> Any:
        if type(value) is str:
            return self._text(value)
        if type(value) is dict:
            fields = cast("dict[str, Any]", value)
            return {self._text(name): self._without(one) for name, one in fields.items()}
        if type(value) is list:
            return [self._without(one) for one in cast("list[Any]", value)]
        if type(value) is int or type(value) is float:
            return HIDDEN if str(value) in self._texts else value
        return value

    def _text(self, text: str) -> str:
        for one in self._texts:
            if one in text:
                text = text.replace(one, HIDDEN)
        return text


NOTHING = Cover()


def _parts(value: str) -> Iterator[str]:
    """A value whole, by its lines, and without the word before it that says of what kind it is."""
    yield value
    yield from (line for line in value.splitlines() if len(line) > 2 * LEAST_TEXT)
    kind, _, rest = value.strip().partition(" ")
    if not rest:
        return
    yield rest.strip()
    if kind.lower() == "basic":
        try:
            pair = b64decode(rest, validate=True).decode()
        except (Error, ValueError):
            return
        yield pair
        yield pair.partition(":")[2]
