"""Lists a folder, as `list_directory` does; plugins name it so."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.system.list_directory import list_directory


async def list_dir(means: Means, call: Call, *, path: str = ".") -> dict[str, Any]:
    """The entries of a folder in a root, with their kinds and sizes."""
    return await list_directory(means, call, path=path)
