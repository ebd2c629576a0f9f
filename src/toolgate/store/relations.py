"""Relations in tables: who may execute what, followed through groups, teams and agents."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from toolgate.caller import Caller
from toolgate.errors import RelationsUnavailable, StoreError
from toolgate.gate.policy import Health
from toolgate.gate.relations import subject_of
from toolgate.store.database import Database
from toolgate.store.text import storable
from toolgate.tenancy.relation import EXECUTE, MOST_MEMBERSHIPS

# `UNION` ends at what was reached before, so that groups may hold each other. Kinds and relations
# are named one by one: each is then a seek in the key, beside which a group's tools are not read.
_HELD = """FROM held CROSS JOIN relations AS r
  WHERE r.tenant_id = $3 AND r.subject_kind = held.kind AND r.subject = held.name
    AND r.subject_relation = held.relation AND"""
_MEMBERSHIP = "r.kind IN ('agent', 'group', 'team')"
_WITH = f"""WITH RECURSIVE held(kind, name, relation) AS (
  SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST('' AS TEXT)
  UNION
  SELECT r.kind, r.name, r.relation {_HELD} {_MEMBERSHIP}
)"""
_SUBJECT = "r.subject_kind, r.subject, r.subject_relation"
_LISTED = f"""{_WITH}
SELECT r.name, {_SUBJECT}, (SELECT count(*) FROM held)
{_HELD} r.kind = 'tool' AND r.relation IN {EXECUTE}"""  # noqa: S608
_SINGLE = f"{_LISTED} AND r.name = $4"
_MEMBERSHIPS = f"{_WITH} SELECT r.kind, r.name, r.relation, {_SUBJECT} {_HELD} {_MEMBERSHIP}"


class TableRelations:
    """The relations port over a database."""

    external = False

    def __init__(self, database: Database) -> None:
        self._database = database
        self._problem = ""

    async def executable(
        self,
        caller: Caller,
        tools: Sequence[str],
        *,
        token: str = "",  # noqa: ARG002  a database has no older answers
        fresh: bool = False,  # noqa: ARG002
    ) -> frozenset[str]:
        """Of these tools, those that the caller's user may execute, in one query."""
        subject = subject_of(caller)
        if subject is None or not tools:
            return frozenset()
        single = len(tools) == 1
        asked = (*subject, caller.tenant, *(tools if single else ()))
        if any(storable(value) != value for value in asked):
            # No row can hold it; and its escape may be another's name.
            return frozenset()
        question = _SINGLE if single else _LISTED
        try:
            rows = (
                await self._database.ask(question, asked, tenant=caller.tenant)
                if single
                # A list may be long.
                else await self._database.read(
                    lambda on: _rows(on, question, asked), tenant=caller.tenant
                )
            )
            # The subject itself counts too. Among so few, none can be farther than the bound.
            if rows and rows[0][4] > MOST_MEMBERSHIPS + 1:
                rows = await self._database.read(
                    lambda on: _within_bound(on, question, asked), tenant=caller.tenant
                )
        except StoreError as error:
            self._problem = error.message
            raise RelationsUnavailable(
                f"Nobody can tell who may execute what. {error.message}"
            ) from None
        self._problem = ""
        return frozenset([row[0] for row in rows]).intersection(tools)

    def health(self) -> Health:
        """Well, when the last question was answered."""
        well = not self._problem
        return Health(engine="store", ok=well, serves=well, problem=self._problem)


def _within_bound(
    connection: Connection, question: str, asked: tuple[str, ...]
) -> Sequence[Sequence[Any]]:
    """Both questions about the same moment: else somebody may seem near who never was."""
    rows = _rows(connection, question, asked)
    near = _near(_rows(connection, _MEMBERSHIPS, asked[:3]), (*asked[:2], ""))
    return [row for row in rows if tuple(row[1:4]) in near]


def _rows(connection: Connection, question: str, asked: tuple[str, ...]) -> Sequence[Sequence[Any]]:
    if connection.dialect.name == "sqlite":
        named = {str(number): value for number, value in enumerate(asked, 1)}
        return connection.exec_driver_sql(question, named).fetchall()
    return connection.exec_driver_sql(question, asked).fetchall()


def _near(rows: Sequence[Sequence[Any]], subject: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """What the subject belongs to within the bound, itself included."""
    above: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        above.setdefault(tuple(row[3:]), []).append(tuple(row[:3]))
    near: set[tuple[Any, ...]] = {subject}
    edge = near
    for _ in range(MOST_MEMBERSHIPS):
        edge = {group for one in edge for group in above.get(one, ())} - near
        if not edge:
            break
        near |= edge
    return near
