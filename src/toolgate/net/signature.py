"""How what is sent to others is signed, so that its receiver knows where it comes from."""

import hashlib
import hmac
from collections.abc import Mapping

from toolgate.errors import SettingsInvalid

_LEAST = 16


def signature(secret: bytes, at: str, body: bytes) -> str:
    """`v1=` and the HMAC-SHA256 of `TIMESTAMP.BODY` in hexadecimal digits."""
    signed = hmac.new(secret, at.encode() + b"." + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"


def signing_secret(where: str, variable: str, environ: Mapping[str, str]) -> str:
    """What stands in the variable that the setting `where` names, if nobody can guess it."""
    secret = environ.get(variable, "")
    if not secret:
        raise SettingsInvalid([f"{where}: the environment variable {variable} is not set"])
    if len(secret) < _LEAST:
        says = (
            f"{where}: {variable} holds fewer than {_LEAST} characters, which can be guessed; make "
            "one by openssl rand -hex 32, and give it to that system, too"
        )
        raise SettingsInvalid([says])
    return secret
