"""Plots and formulas on a terminal, as they are meant to be looked at."""

import re
import sys
from typing import Any, cast

from toolgate.cli import show
from toolgate.cli.far import Server
from toolgate.errors import ToolgateError
from toolgate.spec.drawn import SIXEL, drawn
from toolgate.spec.schema import Schema

# Nothing that a terminal could take for anything else: dots, colours, repeats, line ends.
_SIXEL = re.compile(r"\x1bP[0-9;]*q[!-~\s]*\x1b\\\Z")


def draw(data: Any, schema: Schema | None) -> bool:
    """Whether it was one, and somebody sits at a terminal: then it stands there."""
    if not isinstance(data, dict) or not is_looked_at():
        return False
    found = drawn(schema)
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


def is_looked_at() -> bool:
    """Whether what is printed comes to a screen."""
    return sys.stdout.isatty()


async def schema_there(server: Server, name: str) -> Schema | None:
    """What a server says of a tool's results; nothing where it does not tell."""
    try:
        told = await server.ask("GET", "tools", name)
        given = cast("dict[str, Any]", told).get("output_schema")
        return None if given is None else Schema.of(given)
    except (ToolgateError, ValueError, AttributeError):
        return None
