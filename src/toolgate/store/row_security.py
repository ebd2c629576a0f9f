"""Row-level security on PostgreSQL: a second wall between tenants, behind every statement's own.

Each table that holds what is a tenant's has a policy by the setting of `store.whose`, for its owner
as well. A role that is a superuser, or bypasses row security, sees past it: `problem` says so.
"""

from sqlalchemy import Connection

from toolgate.store.database import HOUSE, Database
from toolgate.store.metadata import metadata
from toolgate.store.whose import SETTING

# Asked once for a statement, and not for each row.
_NOW = f"(SELECT current_setting('{SETTING}', true))"
_OTHER_COLUMNS = {"tenants": "id", "dynamic_tools": "registered_by_tenant"}
_POLICIES = ("toolgate_tenant", "toolgate_owner")
_MOST_NAMED = 3


def columns() -> dict[str, str]:
    """By table, the column that says whose a row is."""
    found = {name: "tenant_id" for name, table in metadata.tables.items() if "tenant_id" in table.c}
    return found | {name: _OTHER_COLUMNS[name] for name in _OTHER_COLUMNS if name in metadata}


def enable(connection: Connection) -> None:
    """For all tables that are there. A file of SQLite has nothing of the kind."""
    if connection.dialect.name != "postgresql":
        return
    each = (one for table, column in sorted(columns().items()) for one in policies(table, column))
    # All on one way: there are a hundred.
    connection.exec_driver_sql(f"DO $$ BEGIN {'; '.join(each)}; END $$")


def policies(table: str, column: str) -> tuple[str, ...]:
    """What walls off a table.

    Who says nothing sees nothing, but for one: a process of an earlier version, which does not know
    that there is something to say, goes on as the owner that it is.
    """
    seen = f"{column} = nullif({_NOW}, '') OR {_NOW} = '{HOUSE}'"
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY toolgate_tenant ON {table} USING ({seen})",
        f"CREATE POLICY toolgate_owner ON {table} TO CURRENT_USER USING ({_NOW} IS NULL)",
    )


def _question() -> str:
    names = ", ".join(f"'{name}'" for name in sorted(columns()))
    ours = ", ".join(f"'{name}'" for name in _POLICIES)
    return f"""
    WITH ours AS (SELECT name, to_regclass(name)::oid AS id FROM unnest(ARRAY[{names}]) AS name)
    SELECT rolname::text, rolsuper, rolbypassrls,
      ARRAY(SELECT name FROM ours WHERE NOT row_security_active(id) ORDER BY name),
      ARRAY(SELECT DISTINCT name FROM ours JOIN pg_policy ON polrelid = id
        WHERE polpermissive AND polname NOT IN ({ours}) ORDER BY name),
      EXISTS (SELECT FROM ours JOIN pg_class ON pg_class.oid = id
        WHERE pg_has_role(relowner, 'USAGE'))
    FROM pg_roles WHERE rolname = current_user
    """  # noqa: S608  names of our own


async def standing(database: Database) -> tuple[str, str]:
    """Why it is not in force for this role, or nothing; and what else is to be known."""
    [[role, is_super, bypasses, off, opened, owns]] = await database.ask(_question())
    if is_super or bypasses:
        what = "is a superuser" if is_super else "has BYPASSRLS"
        return f"the role {role!r} {what}, and sees past it; use a role that cannot", ""
    if off:
        return f"it is off for {_named(off)}; let the owner of the tables switch it on", ""
    if opened:
        return f"policies of others let more be seen in {_named(opened)}; drop them", ""
    owner = f"the role {role!r} owns the tables, and could switch it off; better is one that cannot"
    return "", owner if owns else ""


def _named(tables: list[str]) -> str:
    more = len(tables) - _MOST_NAMED
    return ", ".join(tables[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
