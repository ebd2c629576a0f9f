"""`timestamp`: what time it is, in UTC."""

from toolgate import clock
from toolgate.errors import ToolError

_MOST = 64


async def timestamp(format: str = "") -> dict[str, str | float]:  # noqa: A002  the seed's name
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
