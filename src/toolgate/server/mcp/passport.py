"""What a session of the older revision goes by: an id that says by itself how it was begun.

Any node can open it, so that a client may come to any: nothing is kept for it anywhere. It is
signed, and worth something only with the key that it was given to.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import orjson

from toolgate import clock
from toolgate.server.mcp import revision
from toolgate.server.mcp.line import NEEDS

# How long a session can be gone on with; then its client begins anew.
LIFE_NS = 7 * 86_400 * 10**9
_LONGEST = 2_048
_MOST_SAID = 512


class Holder(NamedTuple):
    """What was agreed on when the session began."""

    # What else knows the session by: short, and the same on every node.
    name: str
    version: str
    capabilities: Mapping[str, Any]


class Passports:
    """Made and read by one secret, which all nodes have."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret or secrets.token_bytes(32)

    def issue(self, version: str, capabilities: Mapping[str, Any], key_id: str) -> str:
        """An id for a session that begins now."""
        said = {"v": version, "c": _brief(capabilities), "at": clock.unix_ns()}
        name, body = secrets.token_urlsafe(18), _text(orjson.dumps(said))
        return f"{name}.{body}.{self.sign(name, body, key_id)}"

    def read(self, id_: str, key_id: str) -> Holder | None:
        """What it says; nothing where it is not ours, another key's, or too old."""
        name, _, rest = id_.partition(".")
        body, _, signature = rest.partition(".")
        if len(id_) > _LONGEST or not id_.isascii():
            return None
        if not hmac.compare_digest(signature.encode(), self.sign(name, body, key_id).encode()):
            return None
        said = cast("dict[str, Any]", orjson.loads(base64.urlsafe_b64decode(body + "==")))
        version, at_ns = said["v"], said["at"]
        if version not in revision.HANDSHAKE or clock.unix_ns() - at_ns > LIFE_NS:
            return None
        return Holder(name, version, said["c"])

    def question(self, node: str, name: str) -> str:
        """An id for what a session's client is asked; it says which node asked."""
        asked = f"{node}-{secrets.token_hex(8)}"
        return f"tg-{asked}-{self.sign(name, asked)}"

    def asked_by(self, id_: str, name: str) -> str:
        """The node that asked this of the session; nothing where none of ours did."""
        prefix, _, rest = id_.partition("-")
        node, _, _ = rest.partition("-")
        asked = rest[: len(node) + 17]
        signature = rest[len(asked) + 1 :].encode()
        is_ours = hmac.compare_digest(signature, self.sign(name, asked).encode())
        return node if prefix == "tg" and is_ours else ""

    def sign(self, *parts: str) -> str:
        """What only a node of this house can say of these."""
        message = "\0".join(parts).encode("utf-8", "backslashreplace")
        return _text(hmac.digest(self._secret, b"session\0" + message, hashlib.sha256)[:16])


def name_of(id_: str) -> str:
    """What else the session is known by."""
    return id_.partition(".")[0]


def _brief(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """All of it, or of a client that says very much what is ever looked at."""
    if len(orjson.dumps(capabilities)) <= _MOST_SAID:
        return capabilities
    return {name: {} for name in NEEDS.values() if name in capabilities}


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
