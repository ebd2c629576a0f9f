"""What the doors need: keys that end, when they were last used, and what the house signs by."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add them; keys that are there have no end."""
    for name in ("expires_ns", "last_used_ns"):
        op.add_column(
            "api_keys", sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)
        )
    op.create_table(
        "house_secrets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_house_secrets")),
    )
