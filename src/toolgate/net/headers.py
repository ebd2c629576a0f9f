"""Headers: those of an answer, by names in any case; those of a request, as they are written."""

import re
from collections.abc import Iterator, Mapping

from toolgate.net.errors import NotSent

# Framing is the client's own; a caller that could set it could smuggle a second request.
_OWN = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade"),
        *("te", "trailer", "expect", "accept-encoding", "http2-settings"),
        *("proxy-authorization", "proxy-connection"),
    }
)
_METHOD = re.compile(r"[A-Z]{1,20}\Z")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}\Z")
_MOST = 65_536
_NOTHING = "Nothing was sent."
# Names that were looked at before: they are few, and the same in each request.
_MOST_NAMES = 1_024
_known: dict[str, str] = {}
_BODY = frozenset({"POST", "PUT", "PATCH"})
_AGENT = "User-Agent: toolgate\r\n"


class Headers(Mapping[str, str]):
    """Of an answer. What came several times is one value, with commas."""

    __slots__ = ("_values",)

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        values: dict[bytes, bytes] = {}
        for name, value in raw:
            name = name.lower()  # noqa: PLW2901
            values[name] = values[name] + b", " + value if name in values else value
        self._values = values

    def raw(self, name: bytes) -> bytes:
        """The bytes of one, by its name in small letters; nothing where there is none."""
        return self._values.get(name, b"")

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower().encode("latin-1", "replace")].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        # A value can be a session's, or a token.
        return f"Headers({', '.join(self)})"


class Fixed(Mapping[str, str]):
    """Headers of a request that go out again and again: looked at once."""

    __slots__ = ("_values", "lines")

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self.lines = _lines(self._values)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        # As above.
        return f"Fixed({', '.join(self)})"


def head(
    method: str, path: str, authority: str, headers: Mapping[str, str], length: int | None
) -> bytes:
    """A request up to its body. What would be read as more than that is not written."""
    if not _METHOD.match(method):
        raise NotSent(f"A method is written in capital letters, such as GET. {_NOTHING}")
    lines = headers.lines if type(headers) is Fixed else _lines(headers)
    size = f"Content-Length: {length or 0}\r\n" if length is not None or method in _BODY else ""
    first = f"{method} {path} HTTP/1.1\r\nHost: {authority}\r\nAccept-Encoding: identity\r\n{size}"
    return b"%b%b\r\n" % (_encoded(first), lines)


def _lines(headers: Mapping[str, str]) -> bytes:
    """Headers as they are written, if they may be."""
    lines, agent = "", _AGENT
    for name, value in headers.items():
        known = _known.get(name) or _learnt(name)
        if known == "user-agent":
            agent = ""
        if not value.isprintable():
            raise NotSent(f"The header {name} has a line break or a control character. {_NOTHING}")
        lines += f"{name}: {value}\r\n"
    if len(lines) > _MOST:
        raise NotSent(f"The headers are longer than {_MOST:,} characters. {_NOTHING}")
    return _encoded(agent + lines)


def _encoded(lines: str) -> bytes:
    try:
        return lines.encode("latin-1")
    except UnicodeEncodeError:
        raise NotSent(f"A header has a letter beyond Latin-1. {_NOTHING}") from None


def _learnt(name: str) -> str:
    """A name that a caller may set, in small letters."""
    if not _NAME.match(name):
        raise NotSent(f"A header has a name that is none. {_NOTHING}")
    small = name.lower()
    if small in _OWN:
        raise NotSent(f"The header {small} is not a caller's to set. {_NOTHING}")
    if len(_known) >= _MOST_NAMES:
        _known.clear()
    _known[name] = small
    return small
