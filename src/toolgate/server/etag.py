"""Whether a list has changed since a client last saw it: `ETag`, `If-None-Match`, and 304."""

import hashlib

from toolgate.server.reply import Reply
from toolgate.server.request import Request

# Only its own client keeps it, and asks before it uses it.
_KEPT = ((b"cache-control", b"private, no-cache"), (b"vary", b"authorization"))
_MOST_TAGS = 64


def tag_of(*parts: bytes) -> bytes:
    """The same parts have the same tag, on every node and after every start."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return b'"%s"' % digest.hexdigest().encode()


def tagged(request: Request, found: Reply) -> Reply:
    """The answer with its tag; nothing but the tag for a client that has it already."""
    if found.status != 200 or any(name == b"etag" for name, _ in found.headers):
        return found
    tag = tag_of(found.body)
    return kept(request, tag) or with_tag(found, tag)


def kept(request: Request, tag: bytes) -> Reply | None:
    """A 304 where the client has what this tag stands for."""
    sent = request.header(b"if-none-match")
    if sent is None:
        return None
    known = [one.strip().removeprefix(b"W/") for one in sent.split(b",", _MOST_TAGS)]
    return Reply(304, b"", b"", _with(tag)) if tag in known or known == [b"*"] else None


def with_tag(found: Reply, tag: bytes) -> Reply:
    """The answer with a tag that was found without it."""
    return found._replace(headers=(*found.headers, *_with(tag)))


def _with(tag: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"etag", tag), *_KEPT)
