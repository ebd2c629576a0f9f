"""Specs from the store: the default catalog, and what was put there since."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol

from toolgate.errors import SourceUnavailable, StoreError
from toolgate.sources.remote import data_only
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec


class Row(Protocol):
    """A stored definition and who it belongs to."""

    @property
    def definition(self) -> Mapping[str, Any]: ...
    @property
    def source(self) -> str: ...


class Rows(Protocol):
    """Where the definitions are kept."""

    async def rows(self) -> Sequence[Row]: ...


class DatabaseSource:
    """The definitions of the `tool_catalog` table."""

    name = "database"
    required = True

    def __init__(self, rows: Rows, *, builtin: Sequence[str]) -> None:
        """`builtin` says, as globs over names, which built-in tools are taken."""
        self._rows = rows
        self._builtin = tuple(builtin)

    async def load(self) -> Sequence[ToolSpec]:
        """Read them all; a row that cannot be read is told by name."""
        try:
            rows = await self._rows.rows()
        except StoreError as error:
            raise SourceUnavailable(error.message) from None
        specs = [
            read_tool(row.definition, origin=Origin(row.source, "default catalog"), file="database")
            for row in rows
        ]
        return [spec for spec in data_only(specs, file="database") if self._taken(spec)]

    def _taken(self, spec: ToolSpec) -> bool:
        if "builtin" not in spec.config.value():
            return True
        return any(fnmatchcase(spec.name, glob) for glob in self._builtin)
