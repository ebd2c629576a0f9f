"""Takes back what `write_file` did: the other half of it, for `undo`."""

from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.system.backups import Backups
from toolgate.tools.system.changing import taken_back
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded


async def restore_file(means: Means, call: Call, *, backup: str) -> dict[str, Any]:
    """The file as it was before; one that was new is removed."""
    found = await Backups(means.shelf, call.caller).find(backup)
    if found is None:
        raise ToolError(
            "There is no such backup of yours. Use `backup` as write_file gave it; it is kept for "
            "31 days, and the newest 500 at most."
        )
    kept, content = found
    restored = await threaded(taken_back, Roots.of(means), kept, content)
    was_there = kept.before.mode is not None
    return {
        "path": kept.path,
        "restored": restored,
        "exists": was_there,
        "size": kept.before.size if was_there else None,
    }
