"""What of MCP only a client says: what it names in headers, and what can be asked of it."""

from collections.abc import Collection, Mapping
from typing import Any

from toolgate.protocol import CAPABILITIES, CLIENT, SUBSCRIPTION, VERSION

# What a caller's own `_meta` must not say in our place.
OURS = frozenset({VERSION, CAPABILITIES, CLIENT, "progressToken", SUBSCRIPTION})

# What a request names, and a header repeats.
NAMED: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}


_ASKS: Mapping[str, Mapping[str, Any]] = {
    "elicitation": {"form": {"applyDefaults": True}},
    "sampling": {},
    "roots": {},
}
# What can be asked of a client at all.
ASKS = tuple(_ASKS)


def capabilities(asks: Collection[str]) -> dict[str, Any]:
    """What a server can ask of us: what an operator allows, else nothing."""
    return {name: how for name, how in _ASKS.items() if name in asks}
