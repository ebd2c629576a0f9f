"""The tools that the cases speak of: of every effect, category and permission."""

from pathlib import Path
from typing import Any

import orjson

from toolgate.catalog.catalog import Catalog
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin
from toolgate.tenancy.capsule import NO_OVERRIDES, Mode
from toolgate.tenancy.tenancy import Tenancy

_ECHO = {"builtin": "echo"}
_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ARGS = {"text": "hello"}
NO_CODE = "no_code"


def _tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "config": _ECHO, "input_schema": _TEXT, "effect": "pure"} | fields


TOOLS = [
    _tool("plain"),
    _tool("reserved", enabled=False),
    _tool("chain_only", allowed_callers=["chain"]),
    _tool(NO_CODE, config={"module": "nothing_of_this_name", "function": "run"}),
    _tool("read_file", category="system", permissions=["filesystem"]),
    _tool(
        "write_file",
        effect="idempotent",
        category="system",
        permissions=["filesystem"],
        side_effects=["modifies_files"],
    ),
    _tool("http_get", category="web", permissions=["network"]),
    _tool("scrape", category="data", permissions=["network"], side_effects=["network_access"]),
    _tool("json_query", category="data"),
    _tool("solve", category="math", permissions=["compute"]),
    _tool("run_shell", effect="irreversible", category="code", permissions=["shell"]),
    _tool("code_execute", effect="irreversible", category="code", side_effects=["local_exec"]),
    _tool("pay", effect="irreversible", category="finance", tags=["money"]),
    _tool(
        "book_room",
        effect="compensatable",
        category="travel",
        compensation={"tool": "plain", "args": {"text": "$args.text"}},
    ),
    _tool("drop_table", effect="irreversible", category="data", destructive=True),
    _tool("mail.list", category="communication", permissions=["network"]),
    _tool("mail.send", effect="irreversible", category="communication", permissions=["network"]),
    _tool("billing:invoices/read", category="finance"),
]


def catalog() -> Catalog:
    """The same tools without a file or anything that runs them."""
    found = Catalog([], usable=lambda spec: "no module" if spec.name == NO_CODE else None)
    found.put("cases", [read_tool(one, origin=Origin("file", "cases")) for one in TOOLS])
    return found


def write_tools(root: Path) -> None:
    (root / "tools").mkdir()
    (root / "tools" / "cases.json").write_bytes(orjson.dumps({"tools": TOOLS}))
    (root / "toolgate.toml").touch()


async def put_flags(
    tenancy: Tenancy, everyone: dict[str, bool], tenants: dict[str, dict[str, bool]]
) -> None:
    for tool, enabled in everyone.items():
        await tenancy.set_tool(tool, enabled)
    for tenant, flags in tenants.items():
        await tenancy.add_tenant(tenant)
        for tool, enabled in flags.items():
            await tenancy.set_tenant_tool(tenant, tool, enabled)


async def put_capsule(
    tenancy: Tenancy,
    whose: str,
    mode: Mode,
    tools: dict[str, bool],
    care: dict[str, dict[str, bool]],
) -> None:
    tenant, agent = whose.split("/")
    await tenancy.set_agent(tenant, agent, mode)
    for tool in {**tools, **care}:
        await tenancy.activate(
            tenant,
            agent,
            tool,
            enabled=tools.get(tool, True),
            overrides=care.get(tool, NO_OVERRIDES),
        )
