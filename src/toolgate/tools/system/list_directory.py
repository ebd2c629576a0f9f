"""Lists what is in a folder."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.system.listing import Wanted, listed
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded


async def list_directory(
    means: Means,
    _call: Call,
    *,
    path: str = ".",
    pattern: str = "",
    depth: int | None = None,
    limit: int = 500,
) -> dict[str, Any]:
    """The entries of a folder in a root, with their kinds and sizes."""
    wanted = Wanted(glob=pattern, depth=depth, limit=limit)
    return await threaded(listed, Roots.of(means), path, wanted)
