"""Tools of a provider called `far`, which a test writes as it needs it."""

from typing import Any

from toolgate import ToolSpec
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin


def far(**fields: Any) -> ToolSpec:
    """A spec that this provider runs."""
    given = {"name": "far", "description": "Far away.", "provider": "far", **fields}
    return read_tool(given, origin=Origin("python", "tests"))
