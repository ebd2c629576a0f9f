"""`reload_plugins`: what has changed of the plugins is loaded, where it is agreed to."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means


async def reload_plugins(means: Means, _call: Call) -> dict[str, Any]:
    """Load plugins that have changed."""
    found = await means.reload_plugins()
    return {"count": found.count, **found.fields()}
