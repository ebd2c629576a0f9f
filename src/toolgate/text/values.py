"""How many values a JSON text of others has, found out before they are made.

A value of two bytes becomes an object of fifty and more: megabytes of them would fill the memory,
and everybody else would wait while they are made.
"""

# An answer with that many rows and columns is a table that nobody reads.
MOST = 300_000
_SIGNS = (b",", b"{", b"[")


def are_too_many(raw: bytes) -> bool:
    """Whether it has more than `MOST`. Nearly every text is too short for that."""
    if len(raw) <= MOST or _signs(raw) <= MOST:
        return False
    # What stands in a text is no value: a table may be sent as one.
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in raw else raw
    if plain.count(b'"') > 4 * MOST:
        return True
    return _signs(b"".join(plain.split(b'"')[::2])) > MOST


def _signs(raw: bytes) -> int:
    return sum(map(raw.count, _SIGNS))
