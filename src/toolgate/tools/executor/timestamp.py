"""`timestamp`: what time it is, in UTC."""

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means

_MOST = 64


async def timestamp(
    _means: Means,
    _call: Call,
    *,
    format: str = "",  # noqa: A002  the seed's name
) -> dict[str, str | float]:
    """Get current timestamp.

    Args:
        format: a strftime format; ISO 8601 without one
    """
    now = clock.utc_now()
    if len(format) > _MOST:
        raise ToolError(f"The format is longer than {_MOST} characters; shorten it.")
    try:
        shown = now.strftime(format) if format else now.isoformat()
    except ValueError:
        raise ToolError("That is not a strftime format; try %Y-%m-%d.") from None
    return {"timestamp": shown, "unix": now.timestamp()}
