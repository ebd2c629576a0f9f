"""A gate whose tools are commands, each in a real sandbox."""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.house import open_gate
from tests.servers.fixtures import needed
from tests.servers.process import absent, services
from toolgate import Toolgate

TEXT = {"type": "string"}


def with_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the one that `make services` brings on PATH."""
    folder = needed(_bubblewrap)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def _bubblewrap() -> Path:
    folder = services() / "bubblewrap" / "usr" / "bin"
    if not (folder / "bwrap").exists():
        raise absent("bubblewrap")
    return folder


def shell_tool(name: str, *argv: object, **fields: Any) -> dict[str, Any]:
    """A definition, with every name that its words take as a text."""
    properties = fields.pop("properties", {"path": TEXT})
    config = {"argv": list(argv), **fields.pop("config", {})}
    schema = {"type": "object", "properties": properties}
    return {"name": name, "provider": "shell", "config": config, "input_schema": schema} | fields


@asynccontextmanager
async def gate_with(root: Path, *tools: dict[str, Any]) -> AsyncGenerator[Toolgate]:
    """A gate on a folder with a tool file, and a folder `work` for commands."""
    for name in ("tools", "work"):
        (root / name).mkdir(exist_ok=True)
    (root / "tools" / "shell.json").write_text(json.dumps({"tools": tools}))
    async with open_gate(root) as gate:
        yield gate
