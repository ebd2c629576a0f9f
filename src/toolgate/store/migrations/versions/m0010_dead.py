"""Dead calls are found without looking at those that were done."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """No row is touched."""
    condition = sa.text("state = 'dead'")
    op.create_index(
        "ix_queue_dead",
        "queue",
        ["id"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
