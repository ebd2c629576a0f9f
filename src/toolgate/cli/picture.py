"""Plots and formulas on a terminal, as they are meant to be looked at."""

import re
import sys
from typing import Any, cast

from toolgate.cli import show
from toolgate.spec.drawn import SIXEL, drawn
from toolgate.spec.schema import Schema
from toolgate.spec.tool import ToolSpec
from toolgate.tools.table import table

# Nothing that a terminal could take for anything else: dots, colours, repeats, line ends.
_SIXEL = re.compile(r"\x1bP[0-9;]*q[!-~\s]*\x1b\\\Z")


def draw(data: Any, spec: ToolSpec | None, name: str) -> bool:
    """Whether it was one, and somebody sits at a terminal: then it stands there."""
    if not isinstance(data, dict) or not sys.stdout.isatty():
        return False
    found = drawn(_schema(spec, name))
    fields = cast("dict[str, Any]", data)
    text = None if found is None else fields.get(found.field)
    if found is None or not isinstance(text, str):
        return False
    if found.kind != SIXEL:
        show.line(text)
    elif _SIXEL.match(text):
        show.raw(text)
    else:
        return False
    if fields.get("note"):
        show.aside(str(fields["note"]))
    return True


def _schema(spec: ToolSpec | None, name: str) -> Schema | None:
    """Of a server's tool only the result is here; its built-in tools are those of this version."""
    if spec is not None:
        return spec.output_schema
    row = table().get(name)
    return None if row is None else Schema.of(row.definition.get("output_schema") or {})
