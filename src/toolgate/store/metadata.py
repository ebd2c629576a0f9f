"""What all tables share: their metadata, and the types that both servers keep alike."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

# Not JSONB on PostgreSQL: the order of an author's properties is kept.
Json = sa.JSON(none_as_null=True)
_PARTIAL = "toolgate_where"


class Moment(TypeDecorator[datetime]):
    """A moment with its zone, also on SQLite, which keeps none."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Store UTC; a moment without a zone is a mistake of ours."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment needs its zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Read UTC."""
        return None if value is None else value.replace(tzinfo=value.tzinfo or UTC)


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def partial(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    """An index of some rows. SQLAlchemy loads a whole dialect to read one of its options, so that
    PostgreSQL is told by `on_postgres`, when somebody is on it.
    """
    told = {_PARTIAL: where}
    return sa.Index(name, *columns, unique=unique, sqlite_where=sa.text(where), info=told)


def on_postgres() -> None:
    """The indexes of some rows are that there, too."""
    for table in metadata.tables.values():
        for index in table.indexes:
            if _PARTIAL in index.info:
                index.dialect_options["postgresql"]["where"] = sa.text(index.info[_PARTIAL])
