"""How many values a JSON text of others has, found out before they are made.

A value of two bytes becomes an object of fifty and more: megabytes of them would fill the memory,
and everybody else would wait while they are made.
"""

# An answer with that many rows and columns is a table that nobody reads.
MOST = 300_000
_SIGNS = (b",", b"{", b"[")
_PIECE = 65_536


def are_too_many(raw: bytes) -> bool:
    """Whether it has more than `MOST`. Nearly every text is too short for that."""
    if len(raw) <= MOST or not _has_more(raw):
        return False
    # What stands in a text is no value: a table may be sent as one.
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in raw else raw
    if plain.count(b'"') > 4 * MOST:
        return True
    return _has_more(b"".join(plain.split(b'"')[::2]))


def _has_more(raw: bytes) -> bool:
    """Whether so many signs stand in it; it is looked at no further than that."""
    found = 0
    for at in range(0, len(raw), _PIECE):
        found += sum(raw.count(sign, at, at + _PIECE) for sign in _SIGNS)
        if found > MOST:
            return True
    return False
