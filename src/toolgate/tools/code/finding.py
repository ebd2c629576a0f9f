"""One thing that is wrong with a text, and where."""

from typing import Any


def finding(
    *,
    line: int,
    column: int,
    code: str,
    message: str,
    end_line: int | None = None,
    end_column: int | None = None,
    url: str | None = None,
    fix: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Lines and columns count from 1."""
    return {
        "line": line,
        "column": column,
        "end_line": end_line or line,
        "end_column": end_column or column,
        "code": code,
        "message": message[:1_000],
        "url": url,
        "fix": fix,
    }
