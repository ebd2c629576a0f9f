"""Specs from the store: the default catalog, and what was put there since."""

import asyncio
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol

from toolgate.errors import InvalidSpecs, SourceUnavailable, StoreError
from toolgate.sources.remote import data_only, names_builtin
from toolgate.spec.reader import MAX_PROBLEMS, read_tool
from toolgate.spec.tool import BUILT_IN, Origin, ToolSpec


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
        return await asyncio.to_thread(self._read, rows)

    def _read(self, rows: Sequence[Row]) -> list[ToolSpec]:
        specs: list[ToolSpec] = []
        problems: list[object] = []
        for row in rows:
            origin = Origin(row.source, BUILT_IN)
            try:
                specs.append(read_tool(row.definition, origin=origin, file="database"))
            except InvalidSpecs as error:
                problems += error.problems
                if len(problems) >= MAX_PROBLEMS:
                    break
        if problems:
            raise InvalidSpecs(problems[:MAX_PROBLEMS])
        kept = data_only(specs, file="database", builtin=True)
        return [spec for spec in kept if self._taken(spec)]

    def _taken(self, spec: ToolSpec) -> bool:
        if not names_builtin(spec):
            return True
        return any(fnmatchcase(spec.name, glob) for glob in self._builtin)
