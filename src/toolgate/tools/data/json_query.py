"""`json_query`: JMESPath over JSON that is given."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.data.given import written
from toolgate.tools.means import Means

# So many characters are read and searched in a few milliseconds.
_INLINE = 32_000


async def json_query(_means: Means, _call: Call, *, data: Any, query: str) -> dict[str, Any]:
    """Query JSON with JMESPath.

    Args:
        data: what to search, as a value or as JSON text
        query: a JMESPath expression
    """
    text = written(data)
    if len(text) <= _INLINE:
        # Loaded by the first call, with its library.
        from toolgate.tools.data.budget import OverspentError  # noqa: PLC0415
        from toolgate.tools.data.querying import SHORT, found  # noqa: PLC0415

        try:
            return _answer(found(text, query, SHORT))
        except OverspentError:
            # It takes its time where nobody waits for it.
            pass
    return _answer(
        await _means.workers.run(
            "toolgate.tools.data.querying:search", {"text": text, "query": query}, seconds=10
        )
    )


def _answer(result: Any) -> dict[str, Any]:
    if isinstance(result, list):
        return {"result": result, "count": len(result)}  # pyright: ignore[reportUnknownArgumentType]
    return {"result": result}
