"""The tables that the catalog, the first two phases of the gate and the journal need."""

import sqlalchemy as sa
from alembic import op

from toolgate.store.metadata import Moment

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create everything."""
    _catalog()
    _tenancy()
    _journal()


def _catalog() -> None:
    op.create_table(
        "tool_catalog",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("params", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_tool_catalog")),
    )
    op.create_table(
        "dynamic_tools",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("registered_by_tenant", sa.Text(), nullable=False),
        sa.Column("registered_by_persona", sa.Text(), nullable=True),
        sa.Column("source_type", sa.Text(), nullable=False),
        sa.Column("source_url", sa.Text(), nullable=True),
        sa.Column("input_schema", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dynamic_tools")),
        sa.UniqueConstraint("name", name=op.f("uq_dynamic_tools_name")),
    )
    op.create_table(
        "tenant_tool_flags",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tool_name"],
            ["tool_catalog.name"],
            name=op.f("fk_tenant_tool_flags_tool_name"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tool_name", name=op.f("pk_tenant_tool_flags")),
    )
    op.create_table(
        "persona_tool_restrictions",
        sa.Column("persona_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("allowed", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tool_name"],
            ["tool_catalog.name"],
            name=op.f("fk_persona_tool_restrictions_tool_name"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "persona_id", "tool_name", name=op.f("pk_persona_tool_restrictions")
        ),
    )


def _tenancy() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenants")),
    )
    op.create_table(
        "agents",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("capsule_mode", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.id"], name=op.f("fk_agents_tenant_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_agents")),
    )
    op.create_table(
        "tool_activations",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("policy_overrides", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.id"],
            name=op.f("fk_tool_activations_tenant_id_agent_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tool_name"],
            ["tool_catalog.name"],
            name=op.f("fk_tool_activations_tool_name"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "agent_id", "tool_name", name=op.f("pk_tool_activations")
        ),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    op.create_table(
        "revisions",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_revisions")),
    )


def _journal() -> None:
    op.create_table(
        "tool_execution_log",
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("persona_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("turn_group", sa.Text(), nullable=False),
        sa.Column("caller_kind", sa.Text(), nullable=False),
        sa.Column("args_hash", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("success", sa.Boolean(), nullable=True),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_tool_execution_log")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_tool_execution_log_tenant_id_created_ns"),
        "tool_execution_log",
        ["tenant_id", "created_ns"],
        unique=False,
    )
    op.create_index(
        op.f("ix_tool_execution_log_tool_name_created_ns"),
        "tool_execution_log",
        ["tool_name", "created_ns"],
        unique=False,
    )
    op.create_table(
        "call_pages",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("first_call_id", sa.Text(), nullable=False),
        sa.Column("written_ns", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "first_call_id", name=op.f("pk_call_pages")),
    )
    op.create_index(
        op.f("ix_call_pages_tenant_id_written_ns"),
        "call_pages",
        ["tenant_id", "written_ns"],
        unique=False,
    )
