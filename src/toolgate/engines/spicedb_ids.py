"""Names as SpiceDB's object ids: two names never share an id, nor do two tenants.

SpiceDB takes up to 1,024 of `[A-Za-z0-9/_|-=+]`. An id is the tenant, which has no slash, a slash
and the name: other signs as `=2e=`, or, where that is too long, all of it packed behind a `+`.
"""

import base64
import re

_MOST = 1_024
_PLAIN = re.compile(r"[A-Za-z0-9_-]+\Z")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_ESCAPE = re.compile(r"=([0-9a-f]+)=")
# One more than the last code point.
_BASE = 0x110000


def object_id(tenant: str, name: str) -> str | None:
    """The id of a name in a tenant; `None` where no relation can hold a name of such a length."""
    made = f"{tenant}/{_written(name)}"
    if len(made) > _MOST:
        # Counted before it is packed: that takes the square of the length.
        made = f"{tenant}/+{_packed(name)}" if len(name) <= _MOST else ""
    return made if name and 0 < len(made) <= _MOST else None


def name_of(tenant: str, id_: str) -> str | None:
    """The name behind an id; `None` for another tenant's, and for what was not written here."""
    whose, _, written = id_.partition("/")
    if whose != tenant or not written:
        return None
    try:
        name = _unpacked(written[1:]) if written[0] == "+" else _read(written)
    except (ValueError, OverflowError):
        return None
    return name if object_id(tenant, name) == id_ else None


def _written(name: str) -> str:
    if _PLAIN.match(name):
        return name
    return _OTHER.sub(lambda sign: f"={ord(sign[0]):x}=", name)


def _read(written: str) -> str:
    return _ESCAPE.sub(lambda code: chr(int(code[1], 16)), written)


def _packed(name: str) -> str:
    # The leading 1 keeps what begins with a zero.
    number = 1
    for sign in name:
        number = number * _BASE + ord(sign)
    size = (number.bit_length() + 7) // 8
    return base64.urlsafe_b64encode(number.to_bytes(size, "big")).decode().rstrip("=")


def _unpacked(packed: str) -> str:
    padded = packed + "=" * (-len(packed) % 4)
    number = int.from_bytes(base64.urlsafe_b64decode(padded), "big")
    signs: list[str] = []
    while number > 1:
        number, code = divmod(number, _BASE)
        signs.append(chr(code))
    return "".join(reversed(signs))
