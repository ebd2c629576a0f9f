"""What is wrong with a text, found in a worker apart."""

from typing import Any

import msgspec

from toolgate.tools.working.pool import Workers

_RUFF = "toolgate.tools.code.ruff:checked"
_SYNTAX = "toolgate.tools.code.syntax:checked"
_SECONDS = 20.0
_MOST = 500


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Which rules of ruff count: by itself errors, wrong names and likely mistakes."""

    select: tuple[str, ...] = ("E4", "E7", "E9", "F", "B")
    ignore: tuple[str, ...] = ()
    line_length: int = 88


async def linted(
    workers: Workers, language: str, text: str, *, rules: Rules, name: str = "code.py"
) -> dict[str, Any]:
    """The findings, and how many there are."""
    if language == "python":
        args = {"code": text, "name": name, **msgspec.to_builtins(rules)}
        found = await workers.run(_RUFF, args, seconds=_SECONDS, starts=True)
    else:
        found = await workers.run(_SYNTAX, {"language": language, "text": text}, seconds=_SECONDS)
    return {
        "language": language,
        "clean": not found,
        "count": len(found),
        "findings": found[:_MOST],
        "truncated": len(found) > _MOST,
    }
