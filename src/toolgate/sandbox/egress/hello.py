"""The first message of TLS, read for the name of the server that it is meant for."""

_RECORD_HEAD = 5
_HANDSHAKE, _CLIENT_HELLO = 22, 1
_MOST_RECORD = 16_384
_SERVER_NAME, _HOST_NAME = 0, 0
MOST = 4 * _MOST_RECORD


class IncompleteError(Exception):
    """So far it is one; more of it has to come."""


def server_name(sent: bytes) -> str:
    """The name, or nothing where it has none; `ValueError` where this is no such message."""
    message = _Bytes(_message(sent))
    message.take(4 + 2 + 32)
    message.part(1)
    message.part(2)
    message.part(1)
    extensions = _Bytes(message.part(2) if message.left else b"")
    names: list[bytes] = []
    while extensions.left:
        kind = extensions.number(2)
        content = extensions.part(2)
        if kind == _SERVER_NAME:
            names += _names(content)
    if len(names) > 1:
        raise ValueError("several names")
    return names[0].decode("ascii").lower() if names else ""


def _names(content: bytes) -> list[bytes]:
    listed = _Bytes(_Bytes(content).part(2))
    found: list[bytes] = []
    while listed.left:
        if listed.number(1) != _HOST_NAME:
            raise ValueError("a name that is no host")
        found.append(listed.part(2))
    return found


def _message(sent: bytes) -> bytes:
    """The message out of its records, which may divide it anywhere."""
    message, at = b"", 0
    while True:
        head = sent[at : at + _RECORD_HEAD]
        if head[:1] not in (b"", bytes([_HANDSHAKE])) or head[1:2] not in (b"", b"\x03"):
            raise ValueError("no TLS")
        if len(head) < _RECORD_HEAD:
            raise IncompleteError
        size = int.from_bytes(head[3:])
        if not 0 < size <= _MOST_RECORD:
            raise ValueError("no record has that size")
        at += _RECORD_HEAD + size
        if len(sent) < at:
            raise IncompleteError
        message += sent[at - size : at]
        if message[0] != _CLIENT_HELLO:
            raise ValueError("another message")
        whole = 4 + int.from_bytes(message[1:4])
        if len(message) >= 4 and len(message) >= whole:
            return message[:whole]


class _Bytes:
    """Bytes that are read from the front; where they end too early, they are wrong."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._content) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise ValueError("it ends too early")
        self._at += size
        return self._content[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def part(self, size: int) -> bytes:
        """What a length of this many bytes stands before."""
        return self.take(self.number(size))
