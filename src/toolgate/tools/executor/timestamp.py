"""`timestamp`: what time it is, in UTC."""

from collections.abc import Callable, Mapping
from datetime import datetime

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means

_MOST = 64
_NAMED: Mapping[str, Callable[[datetime], str]] = {
    "": datetime.isoformat,
    "iso": datetime.isoformat,
    "iso8601": datetime.isoformat,
    "unix": lambda now: str(int(now.timestamp())),
}


async def timestamp(
    _means: Means,
    _call: Call,
    *,
    format: str = "",  # noqa: A002  the seed's name
) -> dict[str, str | float]:
    """Get current timestamp.

    Args:
        format: iso, unix or a strftime format; ISO 8601 without one
    """
    now = clock.utc_now()
    named = _NAMED.get(format.strip().lower())
    if named is not None:
        return {"timestamp": named(now), "unix": now.timestamp()}
    if len(format) > _MOST:
        raise ToolError(f"The format is longer than {_MOST} characters; shorten it.")
    if "%" not in format:
        raise ToolError(
            f"{format!r} is no format. Write iso, unix, or a strftime format such as %Y-%m-%d."
        )
    try:
        shown = now.strftime(format)
    except ValueError:
        raise ToolError("That is not a strftime format; try %Y-%m-%d.") from None
    return {"timestamp": shown, "unix": now.timestamp()}
