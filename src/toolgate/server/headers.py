"""What every answer says to a browser: keep nothing, guess nothing, show and tell it nowhere."""

NOSNIFF = (b"x-content-type-options", b"nosniff")
SAFE = (
    NOSNIFF,
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
# For an answer that is somebody's: with `SAFE`, on all that is not meant to be kept.
CLOSED = ((b"cache-control", b"no-store"), *SAFE)
