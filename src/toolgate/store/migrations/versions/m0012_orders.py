"""The orders that wait are found without passing over the calls of each."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """No row is touched."""
    condition = sa.text("state = 'waiting'")
    op.create_index(
        "ix_queue_orders",
        "queue",
        ["tenant_id", "order_key", "id"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
