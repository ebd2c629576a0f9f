"""`/v1/admin/imports`: tool files that are kept in the store, for every node and every start."""

from functools import partial
from typing import Annotated, Any

import msgspec

from toolgate import toolfiles
from toolgate.errors import InvalidRequest
from toolgate.server.admin.desk import Desk, Signed
from toolgate.server.answers import Shape
from toolgate.server.fields import Nothing
from toolgate.tenancy.names import nearest
from toolgate.text.document import MAX_BYTES

# A text of the largest tool file, as JSON: what has to be escaped in it takes more room.
MOST_BODY = 2 * MAX_BYTES


class NewImport(Signed, kw_only=True):
    """A tool file, in any of the layouts. Without `replace`, one of its name must not be there."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_BYTES)]
    replace: bool = False


class Import(Shape, kw_only=True):
    """A tool file, and the tools that are there of it."""

    name: str
    tools: list[str]


class Imports(Shape, kw_only=True):
    """By name."""

    imports: list[Import]


class ImportShown(Shape, kw_only=True):
    """A tool file as it was sent."""

    name: str
    text: str


class ImportPut(Import, kw_only=True):
    """A tool file that is used from now on; `notes` say which of its tools cannot run yet."""

    notes: list[str]


class ImportRemoved(Shape, kw_only=True):
    """It is gone."""

    name: str
    removed: bool


async def list_imports(desk: Desk, _: Nothing) -> Any:
    """`GET imports`: the tool files that are kept in the store."""
    kept = await desk.gate.tenancy.tool_files()
    tools = partial(toolfiles.tools_in, desk.gate)
    return {"imports": [{"name": name, "tools": tools(name)} for name in sorted(kept)]}


async def show_import(desk: Desk, _: Nothing) -> Any:
    """`GET imports/{name}`: a tool file as it was sent."""
    [name] = desk.names
    kept = await desk.gate.tenancy.tool_files()
    if name not in kept:
        raise InvalidRequest(
            f"No tool file {name[:80]!r} is kept in the store." + nearest(name, kept)
        )
    return {"name": name, "text": kept[name]}


async def put_import(desk: Desk, given: NewImport) -> Any:
    """`PUT imports/{name}` `{text, replace, why}`: a tool file whose tools name no code. It is
    checked against all other tools before it is kept.
    """
    [name] = desk.names
    return await toolfiles.keep(desk.gate, desk.tenancy, name, given.text, replace=given.replace)


async def remove_import(desk: Desk, _: Signed) -> Any:
    """`DELETE imports/{name}`: the file is gone, and its tools with it."""
    [name] = desk.names
    await toolfiles.remove(desk.gate, desk.tenancy, name)
    return {"name": name, "removed": True}
