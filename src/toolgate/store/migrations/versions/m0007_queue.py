"""Calls that wait for a worker."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_WAITS = "state = 'waiting'"
_HELD = "state IN ('sent', 'taken')"
_ORDERED = "order_key <> '' AND state IN ('waiting', 'sent', 'taken')"
_UNTOLD = "told = 0 AND state IN ('done', 'dead')"


def upgrade() -> None:
    """Add it; nothing was queued before."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "queue",
        sa.Column("id", number, nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("order_key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("fence", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("queued_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_ns", sa.BigInteger(), nullable=False),
        sa.Column("ended_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output", sa.LargeBinary(), nullable=False),
        sa.Column("why", sa.Text(), server_default="", nullable=False),
        sa.Column("told", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queue")),
        sa.UniqueConstraint("call_id", name=op.f("uq_queue_call_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_queue_ended_ns"), "queue", ["ended_ns"])
    for name, columns, where in (
        ("ix_queue_waiting", ["tenant_id", "id"], _WAITS),
        ("ix_queue_held", ["due_ns"], _HELD),
        ("ix_queue_ordered", ["order_key", "id"], _ORDERED),
        ("ix_queue_untold", ["id"], _UNTOLD),
    ):
        condition = sa.text(where)
        op.create_index(name, "queue", columns, sqlite_where=condition, postgresql_where=condition)
