"""The tables that layers, personas, relations, policies, the audit log and decisions need."""

import sqlalchemy as sa
from alembic import op

from toolgate.store.metadata import Moment

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add them; what is there stays."""
    _columns()
    _rules()
    _relations()
    _audit()
    _decisions()
    _sessions()


def _columns() -> None:
    op.add_column(
        "tool_execution_log",
        sa.Column("decision_id", sa.Text(), nullable=False, server_default=""),
    )
    op.add_column("api_keys", sa.Column("user_id", sa.Text(), nullable=False, server_default=""))
    op.add_column("api_keys", sa.Column("persona_id", sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "api_keys",
        sa.Column("roles", sa.JSON(none_as_null=True), nullable=False, server_default="[]"),
    )


def _rules() -> None:
    op.create_table(
        "policy_layers",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("allow", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("deny", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "role", "name", name=op.f("pk_policy_layers")),
    )
    op.create_table(
        "personas",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("can_add_tools", sa.Boolean(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_personas")),
    )
    op.create_table(
        "policy_modules",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_policy_modules")),
    )


def _relations() -> None:
    op.create_table(
        "relations",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("subject_kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_relation", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("relation", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id",
            "subject_kind",
            "subject",
            "subject_relation",
            "kind",
            "relation",
            "name",
            name=op.f("pk_relations"),
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_relations_tenant_id_kind_name"),
        "relations",
        ["tenant_id", "kind", "name"],
        unique=False,
    )
    op.create_table(
        "relation_tokens",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_relation_tokens")),
    )


def _audit() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("change", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_index(
        op.f("ix_audit_log_tenant_id_id"), "audit_log", ["tenant_id", "id"], unique=False
    )


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("first_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_ns", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("allowed", sa.Boolean(), nullable=False),
        sa.Column("observed", sa.Boolean(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("policy_revision", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index(
        op.f("ix_decisions_tenant_id_last_ns"), "decisions", ["tenant_id", "last_ns"], unique=False
    )
    op.create_index(op.f("ix_decisions_last_ns"), "decisions", ["last_ns"], unique=False)


def _sessions() -> None:
    op.create_table(
        "session_calls",
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("turn_group", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("args", sa.Text(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_session_calls")),
    )
    for columns in (["tenant_id", "session_id"], ["tenant_id", "turn_group"], []):
        whole = [*columns, "created_ns"]
        op.create_index(
            op.f(f"ix_session_calls_{'_'.join(whole)}"), "session_calls", whole, unique=False
        )
