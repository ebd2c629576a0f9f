"""`json_parse`: JSON from text that may not quite be JSON."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.data.finding_json import parsed
from toolgate.tools.means import Means

_INLINE = 6_000


async def json_parse(
    means: Means, _call: Call, *, text: str, strict: bool = False
) -> dict[str, Any]:
    """Parse JSON, and mend it where it is broken.

    Args:
        text: what holds the JSON
        strict: whether only proper JSON is taken
    """
    asked: dict[str, Any] = {"text": text, "strict": strict}
    if len(text) <= _INLINE:
        return parsed(**asked)
    return await means.workers.run("toolgate.tools.data.finding_json:parsed", asked, seconds=10)
