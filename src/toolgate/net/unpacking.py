"""An answer that was compressed although nobody asked for that: unpacked piece by piece."""

import zlib

from toolgate.net.errors import Lost

CODINGS = frozenset({b"gzip", b"x-gzip", b"deflate"})
# gzip's form or zlib's own, by its first bytes.
_FRAMED = zlib.MAX_WBITS | 32
_BARE = -zlib.MAX_WBITS
_HEAD = 2


class Unpacking:
    """`more` never makes more than it is allowed to: a bomb stays as small as it came."""

    def __init__(self, coding: bytes) -> None:
        self._is_deflate = coding == b"deflate"
        self._unpacker = zlib.decompressobj(_FRAMED)
        self._head = b""
        self._is_begun = False

    @property
    def is_whole(self) -> bool:
        """Whether its end has come."""
        return self._unpacker.eof

    def more(self, piece: bytes, most: int) -> bytes:
        """What a piece holds, up to `most` bytes of it; what follows the end is no part of it."""
        if not self._is_begun:
            self._head += piece
            if len(self._head) < _HEAD:
                return b""
            piece, self._is_begun = self._head, True
            if self._is_deflate and not _is_framed(piece):
                # What servers call deflate comes without its frame, too.
                self._unpacker = zlib.decompressobj(_BARE)
        if most <= 0 or self._unpacker.eof:
            return b""
        try:
            return self._unpacker.decompress(piece, most)
        except zlib.error:
            raise Lost("The answer is compressed and cannot be unpacked.") from None


def _is_framed(beginning: bytes) -> bool:
    """As RFC 1950 says: the method is 8, and the two bytes are a multiple of 31."""
    return beginning[0] & 0x0F == 8 and (beginning[0] << 8 | beginning[1]) % 31 == 0
