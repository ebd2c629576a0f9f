"""What a client keeps for us between two requests: it can be given back, and not be changed."""

import base64
import hashlib
import hmac
from typing import Any

import orjson

from toolgate import clock
from toolgate.server.mcp.rpc import INVALID_PARAMS, Fault

_SECONDS = 3_600
_SIGNATURE = 32
_MOST = 64 * 1024


class Seal:
    """Signs what it gives out. `bound` names whose it is, and what for; it holds for no other."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def close(self, kept: dict[str, Any], bound: str) -> str:
        """As text."""
        body = orjson.dumps({"at": clock.unix_ns() // 10**9, "kept": kept})
        state = base64.urlsafe_b64encode(self._sign(body, bound) + body).decode()
        if len(state) > _MOST:
            raise Fault(INVALID_PARAMS, "The answers are too long to be kept between requests.")
        return state

    def open(self, state: str, bound: str) -> dict[str, Any]:
        """What was kept, or the fault that tells to begin anew."""
        try:
            raw = base64.b64decode(state[:_MOST].encode("ascii"), altchars=b"-_", validate=True)
        except ValueError:
            raise _broken() from None
        # Some letters of the last group mean nothing: only one way to write it is ours.
        if base64.urlsafe_b64encode(raw).decode() != state:
            raise _broken()
        signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._sign(body, bound)):
            raise _broken()
        found = orjson.loads(body)
        if clock.unix_ns() // 10**9 - found["at"] > _SECONDS:
            raise Fault(INVALID_PARAMS, "This 'requestState' is too old: begin the call anew.")
        return found["kept"]

    def _sign(self, body: bytes, bound: str) -> bytes:
        message = bound.encode("utf-8", "backslashreplace") + b"\0" + body
        return hmac.digest(self._secret, message, hashlib.sha256)


def _broken() -> Fault:
    return Fault(
        INVALID_PARAMS,
        "This 'requestState' was not given out for this call: send it back as it came, with the "
        "same arguments, or begin anew.",
    )
