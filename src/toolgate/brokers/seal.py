"""Who wrote a message: signed by the house, or by another system that the settings name."""

import hmac
from collections.abc import Mapping, Sequence

import msgspec

from toolgate import clock
from toolgate.net.signature import signature

SIGNATURE = "toolgate-signature"
AT = "toolgate-timestamp"
PRODUCER = "toolgate-producer"
_NS = 1_000_000_000
# What clocks may differ by.
_AHEAD = 300

# A header can be there and hold nothing.
Headers = Sequence[tuple[str, bytes | None]]


class Signer(msgspec.Struct, frozen=True):
    """Another system: what it signs by, and whose calls are its business."""

    secret: bytes
    tenants: frozenset[str]

    def speaks_for(self, tenant: str) -> bool:
        """Whether it may."""
        return tenant in self.tenants or "*" in self.tenants


class UnsignedError(ValueError):
    """Nobody whom we know has written it."""


class Seal:
    """`secret`: what all nodes of the house sign by. `lasts`: seconds a signature is good for."""

    def __init__(self, secret: bytes, producers: Mapping[str, Signer], *, lasts: float) -> None:
        self._secret = secret
        self._producers = producers
        self._lasts = lasts

    def headers(self, value: bytes) -> Sequence[tuple[str, bytes]]:
        """What says that it is ours."""
        at = str(clock.unix_ns() // _NS)
        return ((AT, at.encode()), (SIGNATURE, signature(self._secret, at, value).encode()))

    def is_ours(self, headers: Headers, value: bytes) -> bool:
        """Whether a node of this house has written it."""
        named = {name for name, _ in headers}
        return PRODUCER not in named and _fits(self._secret, _held(headers), value)

    def signer(self, headers: Headers, value: bytes) -> Signer:
        """The system that wrote it; `UnsignedError` says what is wrong."""
        found = _held(headers)
        if SIGNATURE not in found or PRODUCER not in found:
            raise UnsignedError(
                f"it is not of this house, and not signed: {PRODUCER}, {AT} and {SIGNATURE} are "
                "missing"
            )
        name = found[PRODUCER].decode(errors="replace")
        signer = self._producers.get(name)
        if signer is None or not _fits(signer.secret, found, value):
            raise UnsignedError("its signature is not one of a producer in queue.producers")
        age = clock.unix_ns() / _NS - int(found[AT])
        if not -_AHEAD <= age <= self._lasts:
            raise UnsignedError("its signature is too old, or from the future")
        return signer


def _held(headers: Headers) -> Mapping[str, bytes]:
    """Those that hold something."""
    return {name: value for name, value in headers if isinstance(value, bytes)}


def _fits(secret: bytes, found: Mapping[str, bytes], value: bytes) -> bool:
    at = found.get(AT, b"")
    # A number of seconds: anything else could mean two things at once.
    if not at.isdigit() or len(at) > 12:
        return False
    wanted = signature(secret, at.decode(), value).encode()
    return hmac.compare_digest(wanted, found.get(SIGNATURE, b""))
