"""Which call of an order is under way is found without looking at those that wait."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """No row is touched."""
    condition = sa.text("order_key <> '' AND state = 'taken'")
    op.create_index(
        "ix_queue_running",
        "queue",
        ["order_key"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
