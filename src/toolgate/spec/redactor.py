"""Takes secrets out of what is logged or stored: known ones, and those that tell themselves.

Known are texts that settings name or a call's schema marks. A password in an address, a bearer
token and the value of a header such as `Authorization` are known by where they stand.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Self, cast
from urllib.parse import quote

import orjson

from toolgate.spec.secret import HIDDEN, LEAST_TEXT
from toolgate.spec.sieve import Sieve

# So many are looked for one after the other, each as fast as a text can be searched.
_FEW = 64
_HEADERS = (
    "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token",
)  # fmt: skip
_USER = r"(?<=://)[^/\s\"'@?#<>\\]+(?=@)"
# With a digit or a capital inside: `a basic understanding` is no credential.
_SCHEME = r"(?i:\b(?:bearer|basic)\s+)(?=[^\s\"]*(?:[0-9=]|[a-z][A-Z]))[\w.~+/-]{8,}=*"
_NAMED = '(?i:"(?:' + "|".join(_HEADERS) + ')")'
_PLACED = re.compile(f"{_USER}|{_SCHEME}")
_PLACED_JSON = re.compile(f"{_USER}|{_SCHEME}|{_NAMED}")


class Redactor:
    """Replaces secrets in texts and in JSON. What holds none is handed back as it is."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known: frozenset[str] = frozenset()
        self.learn(known)

    def learn(self, known: Iterable[str]) -> None:
        """Know these too from now on: secrets of a server that was added a moment ago."""
        self._known |= {text for text in known if len(text) >= LEAST_TEXT}
        # The longest first, so that no secret hides the rest of one that it begins.
        forms = {form for text in self._known for form in _forms(text)}
        self._texts = tuple(sorted(forms, key=len, reverse=True))
        self._sieve: Sieve | None = None

    def knowing(self, more: Iterable[str]) -> Self:
        """This one, with more known secrets."""
        added = {text for text in more if len(text) >= LEAST_TEXT} - self._known
        return type(self)(self._known | added) if added else self

    def text(self, text: str) -> str:
        """A text without secrets."""
        if len(self._texts) <= _FEW:
            for known in self._texts:
                if known in text:
                    text = text.replace(known, HIDDEN)
        else:
            text = self._sifting().without(text)
        return _PLACED.sub(_hidden, text)

    def raw(self, raw: bytes) -> bytes:
        """JSON without secrets."""
        # Looking for something in bytes takes several times as long as in a text.
        text = raw.decode()
        if (self._texts and self._holds(text)) or _may_hold(text):
            return orjson.dumps(self.value(orjson.loads(raw)))
        return raw

    def _holds(self, text: str) -> bool:
        if len(self._texts) <= _FEW:
            return any(one in text for one in self._texts)
        return self._sifting().holds(text)

    def _sifting(self) -> Sieve:
        if self._sieve is None:
            self._sieve = Sieve(self._texts)
        return self._sieve

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, its names included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {
                self.value(name): HIDDEN if str(name).lower() in _HEADERS else self.value(of)
                for name, of in fields.items()
            }
        if isinstance(value, list):
            return [self.value(of) for of in cast("list[Any]", value)]
        if isinstance(value, (int, float)) and repr(value) in self._known:
            return HIDDEN
        return value


def _forms(text: str) -> Iterator[str]:
    """As it stands, as JSON writes it, and as an address does."""
    yield text
    if text.isascii() and text.isalnum():
        return
    yield orjson.dumps(text.encode("utf-8", "replace").decode()).decode()[1:-1]
    yield quote(text.encode("utf-8", "replace"), safe="")


def _may_hold(text: str) -> bool:
    """What such places hold is looked for first, one by one: most texts hold none of it."""
    lower = text.lower()
    hinted = (
        "://" in text
        or "bearer" in lower
        or "basic" in lower
        or "authorization" in lower
        or "cookie" in lower
        or "x-api-key" in lower
        or "x-auth-token" in lower
    )
    return hinted and _PLACED_JSON.search(text) is not None


def _hidden(found: re.Match[str]) -> str:
    scheme, space, _ = found[0].partition(" ")
    return f"{scheme} {HIDDEN}" if space else HIDDEN


PLAIN = Redactor()
