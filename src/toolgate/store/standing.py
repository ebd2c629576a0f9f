"""How things stand in the store, as numbers: what waits, and what nobody knows the end of."""

from collections.abc import Awaitable, Callable, Mapping

from toolgate.store.database import HOUSE, Database

# Each reads no more than a small index, or a small table.
QUESTIONS: Mapping[str, str] = {
    "approvals_waiting": (
        "SELECT count(*) FROM approvals "
        "WHERE state IN ('waiting', 'approved') AND state = 'waiting'"
    ),
    "outbox_depth": "SELECT count(*) FROM outbox",
    "unknown_calls": "SELECT count(*) FROM tool_execution_log WHERE state = 'unknown'",
    "audit_unsealed": "SELECT count(*) FROM audit_log WHERE seal IS NULL",
}


def number(
    database: Database, question: str
) -> Callable[[], Awaitable[Mapping[tuple[str, ...], float]]]:
    """One of them, when it is asked for."""

    async def read() -> Mapping[tuple[str, ...], float]:
        [[found]] = await database.ask(QUESTIONS[question], tenant=HOUSE)
        return {(): float(found)}

    return read
