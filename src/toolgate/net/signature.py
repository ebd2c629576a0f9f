"""How what is sent to a webhook is signed, so that its receiver knows where it comes from."""

import hashlib
import hmac


def signature(secret: bytes, at: str, body: bytes) -> str:
    """`v1=` and the HMAC-SHA256 of `TIMESTAMP.BODY` in hexadecimal digits."""
    signed = hmac.new(secret, at.encode() + b"." + body, hashlib.sha256)
    return f"v1={signed.hexdigest()}"
