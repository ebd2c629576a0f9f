"""Tool files: read where no house is open; and on a running one checked against all others, kept in
the store and used at once.

Other nodes read those when they next read their sources.
"""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from toolgate.errors import CatalogError
from toolgate.runtime import Runtime
from toolgate.settings.settings import Settings
from toolgate.sources.files import read_file
from toolgate.sources.kept import IMPORTS, specs_of
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tools.table import table


def read_tool_file(path: Path, shown: str) -> list[ToolSpec]:
    """The specs of one tool file, in any of the layouts; `shown` is how messages call it."""
    return read_file(path, shown)


def names_in_files(settings: Settings) -> set[str]:
    """The tools that are built in or in files that can be read; nothing is opened for that."""
    found = set(table())
    for path in (path for glob in settings.tools.files for path in settings.root.glob(glob)):
        with contextlib.suppress(CatalogError):
            found.update(spec.name for spec in read_file(path, path.name))
    return found


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
