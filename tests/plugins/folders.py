"""Plugins in folders, as their authors write them, and houses that find them there."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from tests.blank import put_blank
from tests.house import ME, STORE
from toolgate import Toolgate
from toolgate.settings.execution import Approvals
from toolgate.settings.settings import Plugins, Settings

CODE = '''\
"""What the manifest names."""

VERSION = {version}


def told(text: str = "") -> dict[str, object]:
    return {{"text": text, "version": VERSION}}
'''


def tool(name: str = "told", **more: Any) -> dict[str, Any]:
    """A tool of a manifest, as short as it can be."""
    return {
        "name": name,
        "description": "Tells its version.",
        "module": "tools",
        "function": "told",
        "category": "data",
        "parameters": {"text": {"type": "string", "required": False}},
        "side_effects": ["read_only"],
    } | more


def manifest(name: str = "teller", **more: Any) -> dict[str, Any]:
    """A manifest with one tool."""
    said: dict[str, Any] = {
        "schema_version": "1.0",
        "name": name,
        "version": "1.0.0",
        "description": "Tells things.",
        "enabled": True,
        "dependencies": [],
        "settings_schema": {},
        "tools": [tool()],
    }
    return said | more


def write(
    root: Path, name: str = "teller", *, version: int = 1, code: str = "", **more: Any
) -> Path:
    """A plugin below `root`; its folder."""
    folder = root / "plugins" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.py").write_text(code or CODE.format(version=version), "utf-8")
    said = {"version": f"{version}.0.0"} | more
    (folder / "manifest.json").write_text(json.dumps(manifest(name, **said)), "utf-8")
    return folder


def settle(root: Path, name: str = "teller", **said: Any) -> None:
    """What the operator sets of a plugin."""
    (root / "plugin_settings").mkdir(exist_ok=True)
    (root / "plugin_settings" / f"{name}.json").write_text(json.dumps(said), "utf-8")


def opened(
    root: Path, *trusted: str, refresh: float = 0, **more: Any
) -> AbstractAsyncContextManager[Toolgate]:
    """A house that finds them; nobody is asked about calls."""
    put_blank(root / STORE)
    return Toolgate.open(
        Settings(
            root=root,
            plugins=Plugins(trusted=trusted, refresh=refresh),
            approvals=Approvals(mode="never"),
            **more,
        )
    )


def row(gate: Toolgate, name: str = "teller") -> dict[str, Any]:
    """How a plugin is, in the eyes of an operator."""
    return next(one for one in gate.plugins.rows() if one["name"] == name)


async def agree(gate: Toolgate, name: str = "teller") -> dict[str, Any]:
    """Agree to what waits, as it was shown."""
    waiting = (await gate.plugins.shown(name))["waiting"]
    by = gate.tenancy.by("ann", "looked at it")
    return await gate.plugins.approve(by, name, waiting["fingerprint"])


async def told(gate: Toolgate, name: str = "told", **args: Any) -> Any:
    """What the tool says."""
    output = await gate.call(name, args, caller=ME)
    assert output.ok, output
    return output.data
