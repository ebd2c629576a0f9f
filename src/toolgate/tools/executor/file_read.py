"""Reads a file, as `read_file` does; the agent system names it so."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.system.read_file import read_file


async def file_read(means: Means, call: Call, *, path: str) -> dict[str, Any]:
    """The text of a file in a root folder, from its beginning on."""
    return await read_file(means, call, path=path)
