"""What a file says to a caller: a piece of it, as text, as lines, or as bytes in base64."""

import base64
import io
import mimetypes
import os
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.system.encoding import HEAD, decoded, is_binary
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.spot import MEGABYTE, file_content

# Lines are counted from the beginning, so that all before them is read too.
_MOST_FOR_LINES = 16 * MEGABYTE
_LONGEST = 4


def piece(roots: Roots, path: str, *, offset: int, length: int, encoding: str) -> dict[str, Any]:
    """So many bytes from an offset on, as text that begins and ends with whole characters."""
    length = least(length, encoding)
    with roots.reading(path) as spot, spot.open_file() as file:
        size = os.fstat(file.fileno()).st_size
        if offset > size:
            raise ToolError(
                f"{spot.shown!r} has {size:,} bytes: an offset of {offset:,} is behind its end."
            )
        if offset:
            head = os.pread(file.fileno(), HEAD, 0)
            os.lseek(file.fileno(), offset, os.SEEK_SET)
            content = file_content(file, length)
        else:
            content = file_content(file, length)
            head = content[:HEAD]
        is_end = offset + len(content) >= size
        return shown(
            spot.shown, size, content, head, offset=offset, is_end=is_end, encoding=encoding
        )


def lines(roots: Roots, path: str, *, line: int, count: int, encoding: str) -> dict[str, Any]:
    """So many lines from one on; the first is 1."""
    if encoding == "base64":
        raise ToolError("Bytes have no lines. Leave out `line`, and use offset and length.")
    with roots.reading(path) as spot:
        content = spot.read(_MOST_FOR_LINES)
        told = shown(
            spot.shown,
            len(content),
            content,
            content[:HEAD],
            offset=0,
            is_end=True,
            encoding=encoding,
        )
    if told["binary"]:
        return told
    found = list(io.StringIO(told["text"], newline=""))
    if line > max(1, len(found)):
        raise ToolError(f"{spot.shown!r} has {len(found):,} lines: there is no line {line:,}.")
    chosen = found[line - 1 : line - 1 + count]
    text, taken = _at_most(chosen)
    following = line + taken
    return told | {
        "text": text,
        "line": line,
        "lines": len(found),
        "next": None,
        "next_line": following if following <= len(found) else None,
    }


def least(length: int, encoding: str) -> int:
    """So many bytes, and as many as the longest character has, so that reading on never stands."""
    return length if encoding in {"base64", "latin-1"} else max(length, _LONGEST)


def shown(
    path: str,
    size: int,
    content: bytes,
    head: bytes,
    *,
    offset: int,
    is_end: bool,
    encoding: str,
) -> dict[str, Any]:
    """A piece as a caller is told of it; `head` is how the file begins."""
    media_type = mimetypes.guess_type(path)[0]
    whole: dict[str, Any] = {"path": path, "size": size, "offset": offset, "next": None}
    end = offset + len(content)
    following = None if is_end else end
    if encoding == "base64":
        text = base64.b64encode(content).decode()
        return whole | {"text": text, "encoding": "base64", "binary": True, "next": following}
    if encoding == "auto" and is_binary(head):
        kind = media_type or "unknown"
        note = (
            f"The file is binary, of the media type {kind}, and is not shown as text. Read it with "
            "encoding 'base64' where its bytes are needed."
        )
        return whole | {"text": "", "encoding": "binary", "binary": True, "note": note}
    found = decoded(content, head=head, offset=offset, is_end=is_end, encoding=encoding)
    whole |= {"text": found.text, "encoding": found.encoding, "binary": False}
    whole |= {"offset": found.begin, "next": None if is_end else found.end}
    return whole | ({"note": found.note} if found.note else {})


def _at_most(chosen: list[str]) -> tuple[str, int]:
    """As many whole lines as may be answered at once; one at least, cut where it is too long."""
    total = 0
    for taken, one in enumerate(chosen):
        total += len(one)
        if total > MEGABYTE:
            if taken == 0:
                return one[:MEGABYTE], 1
            return "".join(chosen[:taken]), taken
    return "".join(chosen), len(chosen)
