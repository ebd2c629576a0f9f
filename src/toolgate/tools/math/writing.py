"""Expressions of SymPy's as texts that read like the grammar that callers write in.

Needs SymPy, so that only workers import this.
"""

import importlib
from typing import Any

LONGEST = 2_000
_printer: Any = importlib.import_module("sympy.printing.str").StrPrinter


class _Writer(_printer):
    def _print_Exp1(self, _expression: Any) -> str:  # noqa: N802  as SymPy looks it up
        return "e"


def written(value: Any) -> str | None:
    """Such as `-1/2 + sqrt(3)*I/2`; nothing where it would be too long to read."""
    text: str = _Writer().doprint(value)
    return text if len(text) <= LONGEST else None
