"""`read_output`: a piece of an output that was too large to be answered at once."""

from typing import Any

from toolgate.call import Call
from toolgate.caller import Caller
from toolgate.errors import PermissionDenied, ToolError, ToolNotFound
from toolgate.ledger.history import owner_of
from toolgate.tools.means import May, Means

PREFIX = "out_"
_PIECE = 20_000
_MOST = 100_000
# No output that is kept is longer.
_LARGEST = 64 * 1024 * 1024
# The longest character in UTF-8: a cut may stand at most one less inside it.
_LONGEST = 4


async def read_output(
    means: Means, call: Call, *, reference: str, offset: int = 0, length: int = _PIECE
) -> dict[str, Any]:
    """Read a piece of an output that was too large to be answered at once.

    The gate is asked about the tool that the output comes from: what was taken away is not read.
    """
    if not 0 <= offset <= _LARGEST or not 1 <= length <= _MOST:
        raise ToolError(f"An offset is from 0 to {_LARGEST:,}, and a length from 1 to {_MOST:,}.")
    caller = call.caller
    # As many bytes more as it takes to see where characters begin and end.
    before = min(offset, _LONGEST - 1)
    found = await means.outputs.piece(
        caller.tenant,
        owner_of(caller),
        _digest(reference),
        offset=offset - before,
        length=before + length + _LONGEST,
    )
    if found is None or not await _is_allowed(means.may(), caller, found.tool):
        raise ToolError(
            "There is no such output that you can read. It may have expired: call the tool "
            "again, or use the reference exactly as it was given."
        )
    first, last = _whole(found.content, before, before + length)
    begin = offset - before + first
    end = begin + last - first
    return {
        "text": found.content[first:last].decode("utf-8", "replace"),
        "offset": min(begin, found.size),
        "next": end if end < found.size else None,
        "size": found.size,
        "media_type": found.media_type,
    }


async def _is_allowed(may: May, caller: Caller, tool: str) -> bool:
    """Whether the caller may still call what made it: what was taken away is not read later."""
    try:
        await may(caller, tool)
    except (ToolNotFound, PermissionDenied):
        return False
    return True


def _digest(reference: str) -> str:
    return "sha256:" + reference.removeprefix(PREFIX) if reference.startswith(PREFIX) else ""


def _whole(content: bytes, first: int, last: int) -> tuple[int, int]:
    """The cut, moved back to where characters begin; it holds at least one of them."""
    first, last = _start(content, first), _start(content, last)
    if last <= first < len(content):
        last = first + 1
        while last < len(content) and _is_inside(content[last]):
            last += 1
    return first, last


def _start(content: bytes, at: int) -> int:
    at = min(at, len(content))
    least = max(at - _LONGEST + 1, 0)
    back = at
    while back > least and back < len(content) and _is_inside(content[back]):
        back -= 1
    return back


def _is_inside(byte: int) -> bool:
    """Whether it continues a character."""
    return byte & 0xC0 == 0x80
