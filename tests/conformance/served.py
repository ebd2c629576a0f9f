"""A real `toolgate serve` with the suite's tools, set up as an operator would: by a tool file."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

from tests.conformance import asking, fixtures, tasking
from tests.conformance.behind import OVERLAY, Other, settings
from tests.server.serving import Serving
from toolgate.spec.function import Binding
from toolgate.spec.shape import DECLARED

ROOT = Path(__file__).resolve().parents[2]
_MODULES = (asking, fixtures, tasking)
# Tools are read again at once: one of them adds another, and the suite waits to be told of it.
SETTINGS = f"""\
[tools]
builtin = []
refresh = 0.1

[mcp]
task_after = {tasking.AFTER_S}
"""


def serving(root: Path, other: Other) -> Serving:
    """The server, in a folder of its own. Prompts are another server's."""
    (root / "toolgate.toml").write_text(f"{SETTINGS}\n{settings(other)}")
    (root / "overlay.yaml").write_text(OVERLAY)
    folder = root / "tools"
    folder.mkdir()
    found = [_definition(module, one) for module in _MODULES for one in _tools(module)]
    (folder / "fixtures.json").write_bytes(orjson.dumps({"tools": found}))
    return Serving(root, before=f"import sys; sys.path.insert(0, {str(ROOT)!r}); ")


def _tools(module: ModuleType) -> list[Callable[..., Any]]:
    own = [one for one in vars(module).values() if hasattr(one, DECLARED)]
    return [one for one in own if one.__module__ == module.__name__]


def _definition(module: ModuleType, function: Callable[..., Any]) -> dict[str, Any]:
    spec = Binding(function).spec
    config = {"module": module.__name__, "function": spec.name}
    # What a function says of itself, as whoever writes a file about it would.
    said = {"description": spec.description, "input_schema": spec.input_schema.value()}
    return {
        "name": spec.name,
        "provider": "python",
        "config": config,
        **said,
        **_declared(function),
    }


def _declared(function: Callable[..., Any]) -> dict[str, Any]:
    return getattr(function, DECLARED)
