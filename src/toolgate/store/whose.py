"""Whose rows a statement on PostgreSQL sees: what its policies (`store.row_security`) go by.

It is said for one transaction at a time, and costs no way to the server: with the words that begin
the transaction, or in the statement that is one by itself. What says nothing sees nobody's rows.
"""

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.store.database import HOUSE

SETTING = "toolgate.tenant"
# Of a connection, when it is opened: to be without a tenant is not the same as to know of none.
NOBODY = f"SELECT set_config('{SETTING}', '', false)"
_SET = sa.text(f"SELECT set_config('{SETTING}', :tenant, true)")
_NOW = sa.text(f"SELECT current_setting('{SETTING}', true)")


def gate(at: int) -> str:
    """A condition that is always true, for a statement whose parameter `at` is the tenant.

    The server asks it once, before it looks at a row: no row has a part in it.
    """
    return f"(SELECT set_config('{SETTING}', ${at}::text, true)) IS NOT NULL"


@lru_cache(maxsize=256)
def within(question: str, at: int) -> str:
    """The question behind the gate."""
    return f"SELECT * FROM ({question}) AS asked WHERE {gate(at)}"  # noqa: S608  words of our own


def beginning(begin: str, tenant: str) -> str:
    """The words that begin a transaction, and whose it is."""
    quoted = tenant.replace("\\", "\\\\").replace("'", "''")
    return f"{begin.rstrip(';')}; SET LOCAL {SETTING} = E'{quoted}'"


@contextmanager
def whole(connection: Connection) -> Generator[None]:
    """All rows of the house for a moment, where only they can tell."""
    if connection.dialect.name != "postgresql":
        yield
        return
    before = connection.execute(_NOW).scalar_one()
    connection.execute(_SET, {"tenant": HOUSE})
    yield
    connection.execute(_SET, {"tenant": before or ""})
