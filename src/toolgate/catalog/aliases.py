"""Short names of tools whose own name begins with where they come from."""

from collections.abc import Collection, Mapping

from toolgate.spec.lookalike import skeleton
from toolgate.spec.tool import ToolSpec

_MCP = "mcp"


def aliases(specs: Mapping[str, ToolSpec], unusable: Collection[str]) -> dict[str, str]:
    """What a server calls its tool, where one tool has that name and no other looks like it.

    A name of the catalog stands for its own tool, whatever a server calls another. A tool that
    waits or is away keeps its name: nobody else's runs for it meanwhile.
    """
    served = {name: _own(spec) for name, spec in specs.items() if spec.provider == _MCP}
    if not served:
        return {}
    seen: dict[str, int] = {}
    for spec in specs.values():
        key = skeleton(served.get(spec.name, spec.name))
        seen[key] = seen.get(key, 0) + 1
    return {
        short: name
        for name, short in served.items()
        if name not in unusable
        and short != name
        and short not in specs
        and seen[skeleton(short)] == 1
    }


def _own(spec: ToolSpec) -> str:
    return str(spec.config.value().get("tool") or spec.name)
