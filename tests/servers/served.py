"""The real MCP servers that `make services` brings, as settings name them."""

import sys
from pathlib import Path
from typing import Any

from tests.servers.process import absent, services

_OFFICIAL = "node_modules/@modelcontextprotocol"


def time_server() -> dict[str, Any]:
    """`mcp-server-time`, in an environment of its own."""
    home = services() / "timed"
    if not (home / "bin" / "python").exists():
        raise absent("mcp-server-time")
    return {
        "command": [str(home / "bin" / "python"), "-m", "mcp_server_time"],
        "args": ["--local-timezone", "UTC"],
        # Its interpreter is the one that the environment was made from.
        "readable": [str(home), sys.base_prefix],
    }


def file_server(folder: Path) -> dict[str, Any]:
    """`server-filesystem`, for one folder."""
    return _of_node("server-filesystem", str(folder)) | {"writable": [str(folder)]}


def memory_server(folder: Path) -> dict[str, Any]:
    """`server-memory`, which keeps its graph in a file."""
    given = {"MEMORY_FILE_PATH": str(folder / "memory.json")}
    return _of_node("server-memory") | {"writable": [str(folder)], "env": given}


def _of_node(package: str, *args: str) -> dict[str, Any]:
    home = services() / "served"
    node = home / "node_modules" / ".bin" / "node"
    if not node.exists():
        raise absent(package)
    program = home / _OFFICIAL / package / "dist" / "index.js"
    return {"command": [str(node), str(program)], "args": list(args), "readable": [str(home)]}
