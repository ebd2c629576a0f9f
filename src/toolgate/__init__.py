"""toolgate: a governed tool runtime and gateway for AI agents."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.asked import Question
    from toolgate.bootstrap import Toolgate
    from toolgate.call import Call, Output, Turn
    from toolgate.caller import Caller, Context
    from toolgate.errors import CallRefused, ToolError, ToolgateError
    from toolgate.executor.extension import Extension, Priority
    from toolgate.spec.function import tool
    from toolgate.spec.tool import ToolSpec

__all__ = [
    "Call",
    "CallRefused",
    "Caller",
    "Context",
    "Extension",
    "Output",
    "Priority",
    "Question",
    "ToolError",
    "ToolSpec",
    "Toolgate",
    "ToolgateError",
    "Turn",
    "tool",
]
__version__ = "0.1.0"

# Loaded at first use: `toolgate --help` does not pay for a database driver.
_HOMES = {
    "Call": "toolgate.call",
    "CallRefused": "toolgate.refusal",
    "Caller": "toolgate.caller",
    "Context": "toolgate.caller",
    "Extension": "toolgate.executor.extension",
    "Output": "toolgate.call",
    "Priority": "toolgate.executor.extension",
    "Question": "toolgate.asked",
    "ToolError": "toolgate.failure",
    "ToolSpec": "toolgate.spec.tool",
    "Toolgate": "toolgate.bootstrap",
    "ToolgateError": "toolgate.trouble",
    "Turn": "toolgate.call",
    "tool": "toolgate.spec.function",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolgate' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
