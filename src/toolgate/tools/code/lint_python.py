"""Checks Python code with ruff; the code is not run."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.code.lint import Rules, linted
from toolgate.tools.means import Means


async def lint_python(
    means: Means,
    _call: Call,
    *,
    code: str,
    select: list[str] | None = None,
    ignore: list[str] | None = None,
    line_length: int = 88,
) -> dict[str, Any]:
    """What ruff finds in it."""
    usual = Rules()
    rules = Rules(
        select=tuple(select or usual.select), ignore=tuple(ignore or ()), line_length=line_length
    )
    return await linted(means.workers, "python", code, rules=rules)
