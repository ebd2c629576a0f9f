"""A folder with the four tools that the cases speak of, and how to put a case's world into it."""

from pathlib import Path
from typing import Any

import orjson

from toolgate import Toolgate
from toolgate.tenancy.capsule import Mode

_ECHO = {"module": "toolgate.tools.executor.echo", "function": "echo"}
_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ARGS = {"text": "hello"}


def _tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "config": _ECHO, "input_schema": _TEXT, "effect": "pure"} | fields


TOOLS = [
    _tool("plain"),
    _tool("reserved", enabled=False),
    _tool("chain_only", allowed_callers=["chain"]),
    _tool("no_code", config={"module": "nothing_of_this_name", "function": "run"}),
]


def write_tools(root: Path) -> None:
    (root / "tools").mkdir()
    (root / "tools" / "four.json").write_bytes(orjson.dumps({"tools": TOOLS}))
    (root / "toolgate.toml").touch()


async def put_flags(
    gate: Toolgate, everyone: dict[str, bool], tenants: dict[str, dict[str, bool]]
) -> None:
    for tool, enabled in everyone.items():
        await gate.tenancy.set_tool(tool, enabled)
    for tenant, flags in tenants.items():
        await gate.tenancy.add_tenant(tenant)
        for tool, enabled in flags.items():
            await gate.tenancy.set_tenant_tool(tenant, tool, enabled)


async def put_capsule(gate: Toolgate, whose: str, mode: Mode, tools: dict[str, bool]) -> None:
    tenant, agent = whose.split("/")
    await gate.tenancy.set_agent(tenant, agent, mode)
    for tool, enabled in tools.items():
        await gate.tenancy.activate(tenant, agent, tool, enabled=enabled)
