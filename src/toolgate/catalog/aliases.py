"""Short names of tools whose own name begins with where they come from."""

from collections.abc import Collection, Mapping

from toolgate.spec.lookalike import skeleton
from toolgate.spec.tool import ToolSpec

_MCP = "mcp"


def aliases(specs: Mapping[str, ToolSpec], unusable: Collection[str]) -> dict[str, str]:
    """What a server calls its tool, where one tool has that name and no other looks like it.

    A name of the catalog stands for its own tool, whatever a server calls another.
    """
    usable = [spec for spec in specs.values() if spec.name not in unusable]
    served = {spec.name: _own(spec) for spec in usable if spec.provider == _MCP}
    if not served:
        return {}
    seen: dict[str, int] = {}
    for spec in usable:
        key = skeleton(served.get(spec.name, spec.name))
        seen[key] = seen.get(key, 0) + 1
    return {
        short: name
        for name, short in served.items()
        if short != name and short not in specs and seen[skeleton(short)] == 1
    }


def _own(spec: ToolSpec) -> str:
    return str(spec.config.value().get("tool") or spec.name)
