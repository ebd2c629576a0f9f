"""Tool files on a running house: checked against all others, kept in the store, used at once.

Other nodes read them when they next read their sources.
"""

import asyncio
from typing import Any

from toolgate.runtime import Runtime
from toolgate.sources.kept import IMPORTS, specs_of
from toolgate.tenancy.tenancy import Tenancy


async def keep(
    gate: Runtime, tenancy: Tenancy, name: str, text: str, *, replace: bool
) -> dict[str, Any]:
    """Check a tool file and keep it; `InvalidSpecs` or `NameClash` where it cannot be used."""
    specs = await asyncio.to_thread(specs_of, name, text)
    # Another node may have kept one since this one last read them.
    await gate.catalog.again(IMPORTS)
    others = [one for one in gate.catalog.part(IMPORTS) if one.origin.where != name]
    gate.catalog.check(IMPORTS, [*others, *specs])
    await tenancy.put_tool_file(name, text, replace=replace)
    unusable = (await gate.catalog.again(IMPORTS)).unusable
    names = [spec.name for spec in specs]
    notes = [f"{one} cannot run yet: {unusable[one]}." for one in names if one in unusable]
    if tools_in(gate, name) != names:
        notes.append(
            f"{name} is kept, but not used: another took one of its names at the same time. Rename "
            "its tools and import it with --replace, or remove it."
        )
    return {"name": name, "tools": names, "notes": notes}


async def remove(gate: Runtime, tenancy: Tenancy, name: str) -> None:
    """The file is gone, and its tools with it."""
    await tenancy.remove_tool_file(name)
    await gate.catalog.again(IMPORTS)


def tools_in(gate: Runtime, name: str) -> list[str]:
    """The tools that are there of a file."""
    return [one.name for one in gate.catalog.part(IMPORTS) if one.origin.where == name]
