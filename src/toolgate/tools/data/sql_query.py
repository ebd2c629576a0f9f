"""`sql_query`: SQL over rows that are given."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means


async def sql_query(
    means: Means,
    _call: Call,
    *,
    query: str,
    tables: dict[str, Any],
    params: list[Any] | dict[str, Any] | None = None,
    writes: bool = False,
    limit: int = 1000,
    seconds: float = 5,
) -> dict[str, Any]:
    """Query tables in memory with SQL.

    Args:
        query: SQLite's SQL
        tables: rows by the name of their table
        params: values of ? or of :name
        writes: whether the tables may be changed, for this call
        limit: how many rows to give at most
        seconds: how long it may take
    """
    asked: dict[str, Any] = {
        "query": query,
        "tables": tables,
        "params": params or [],
        "writes": writes,
        "limit": limit,
        "seconds": seconds,
    }
    return await means.workers.run("toolgate.tools.data.sql:answered", asked, seconds=seconds + 2)
