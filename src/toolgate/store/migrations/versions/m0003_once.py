"""What once-only, approvals, budgets, outputs, events and seals need."""

import hashlib

import sqlalchemy as sa
from alembic import op

from toolgate.store.metadata import Moment

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add them; what is there stays."""
    _calls()
    _people()
    _approvals()
    _budgets()
    _outputs()
    _events()
    _seals()
    _noted()


def _calls() -> None:
    op.add_column(
        "tool_execution_log", sa.Column("chain_id", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log",
        sa.Column("chain_index", sa.Integer(), server_default="0", nullable=False),
    )
    op.add_column(
        "tool_execution_log", sa.Column("planned", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log", sa.Column("turn_id", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log", sa.Column("once_scope", sa.Text(), server_default="", nullable=False)
    )
    op.add_column("tool_execution_log", sa.Column("once_key", sa.Text(), nullable=True))
    op.add_column(
        "tool_execution_log", sa.Column("digest", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log",
        sa.Column("recovery", sa.Text(), server_default="park", nullable=False),
    )
    op.add_column(
        "tool_execution_log", sa.Column("owner", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log",
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
    )
    op.add_column("tool_execution_log", sa.Column("lease_ns", sa.BigInteger(), nullable=True))
    op.add_column("tool_execution_log", sa.Column("expires_ns", sa.BigInteger(), nullable=True))
    op.add_column(
        "tool_execution_log",
        sa.Column("tried", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column(
        "tool_execution_log",
        sa.Column("permanent", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column(
        "tool_execution_log", sa.Column("approval_id", sa.Text(), server_default="", nullable=False)
    )
    op.add_column("tool_execution_log", sa.Column("args", sa.Text(), nullable=True))
    op.add_column("tool_execution_log", sa.Column("result", sa.Text(), nullable=True))
    op.add_column("tool_execution_log", sa.Column("plan", sa.Text(), nullable=True))
    op.add_column("tool_execution_log", sa.Column("undo_until_ns", sa.BigInteger(), nullable=True))
    op.add_column(
        "tool_execution_log", sa.Column("charges", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log", sa.Column("again_of", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log", sa.Column("undo_of", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log", sa.Column("wanted_by", sa.Text(), server_default="", nullable=False)
    )
    op.add_column(
        "tool_execution_log",
        sa.Column("ended_ns", sa.BigInteger(), server_default="0", nullable=False),
    )
    op.add_column(
        "tool_execution_log", sa.Column("task", sa.Text(), server_default="", nullable=False)
    )
    op.create_index(
        "ix_tool_execution_log_open",
        "tool_execution_log",
        ["lease_ns"],
        unique=False,
        sqlite_where=sa.text("state IN ('claimed', 'started', 'compensating')"),
        postgresql_where=sa.text("state IN ('claimed', 'started', 'compensating')"),
    )
    op.create_index(
        "ix_tool_execution_log_turn",
        "tool_execution_log",
        ["tenant_id", "turn_group", "created_ns"],
        unique=False,
        sqlite_where=sa.text("turn_group <> ''"),
        postgresql_where=sa.text("turn_group <> ''"),
    )
    op.create_index(
        "ix_tool_execution_log_chain",
        "tool_execution_log",
        ["tenant_id", "chain_id", "created_ns"],
        unique=False,
        sqlite_where=sa.text("chain_id <> ''"),
        postgresql_where=sa.text("chain_id <> ''"),
    )
    op.create_index(
        "ix_tool_execution_log_again",
        "tool_execution_log",
        ["tenant_id", "again_of"],
        unique=False,
        sqlite_where=sa.text("again_of <> ''"),
        postgresql_where=sa.text("again_of <> ''"),
    )
    op.create_index(
        "ix_tool_execution_log_unknown",
        "tool_execution_log",
        ["tenant_id", "created_ns"],
        unique=False,
        sqlite_where=sa.text("state = 'unknown'"),
        postgresql_where=sa.text("state = 'unknown'"),
    )
    op.create_index(
        "uq_tool_execution_log_once",
        "tool_execution_log",
        ["tenant_id", "once_scope", "once_key"],
        unique=True,
    )


def _people() -> None:
    op.add_column("agents", sa.Column("newer_messages", sa.Text(), nullable=True))
    op.add_column("tenants", sa.Column("plan", sa.Text(), nullable=True))
    op.create_table(
        "removed_agents",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("removed_at", Moment, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"],
            ["tenants.id"],
            name=op.f("fk_removed_agents_tenant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_removed_agents")),
    )


def _approvals() -> None:
    op.create_table(
        "approvals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("args", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("policy_revision", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_ns", sa.BigInteger(), nullable=False),
        sa.Column("decided_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("decided_by", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approvals")),
    )
    op.create_index(
        op.f("ix_approvals_tenant_id_created_ns"),
        "approvals",
        ["tenant_id", "created_ns"],
        unique=False,
    )
    op.create_index(
        "uq_approvals_open",
        "approvals",
        ["tenant_id", "hash"],
        unique=True,
        sqlite_where=sa.text("state IN ('waiting', 'approved')"),
        postgresql_where=sa.text("state IN ('waiting', 'approved')"),
    )


def _budgets() -> None:
    op.create_table(
        "budget_leases",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("granted", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("lease_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_leases")),
    )
    op.create_index(
        op.f("ix_budget_leases_tenant_id_metric_period"),
        "budget_leases",
        ["tenant_id", "metric", "period"],
        unique=False,
    )
    op.create_table(
        "budget_usage",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "metric", "period", name=op.f("pk_budget_usage")),
    )
    op.create_table(
        "rate_limits",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("persona_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("per", sa.Float(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id", "persona_id", "tool_name", name=op.f("pk_rate_limits")
        ),
    )
    op.create_table(
        "tenant_budgets",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("most", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "metric", name=op.f("pk_tenant_budgets")),
    )


def _outputs() -> None:
    op.create_table(
        "blobs",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "scope", "digest", name=op.f("pk_blobs")),
    )
    op.create_index(op.f("ix_blobs_created_ns"), "blobs", ["created_ns"], unique=False)


def _events() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_ns", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_outbox_key_id"), "outbox", ["key", "id"], unique=False)


def _seals() -> None:
    op.create_table(
        "audit_seals",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("first_id", sa.BigInteger(), nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "number", name=op.f("pk_audit_seals")),
    )
    op.add_column("audit_log", sa.Column("digest", sa.Text(), server_default="", nullable=False))
    op.add_column("audit_log", sa.Column("seal", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_audit_log_unsealed",
        "audit_log",
        ["id"],
        unique=False,
        sqlite_where=sa.text("seal IS NULL"),
        postgresql_where=sa.text("seal IS NULL"),
    )


_AUDIT = sa.table(
    "audit_log",
    sa.column("at_ns", sa.BigInteger()),
    sa.column("who", sa.Text()),
    sa.column("why", sa.Text()),
    sa.column("tenant_id", sa.Text()),
    sa.column("change", sa.Text()),
    sa.column("details", sa.JSON()),
)
_PAGES = "SELECT tenant_id, first_call_id, written_ns, calls, entries FROM call_pages"
_ENDED = (
    "SELECT call_id, tool_name, fingerprint, effect, tenant_id, agent_id, user_id, session_id, "
    "turn_group, args_hash, state, decision_id, created_ns FROM tool_execution_log "
    "WHERE state NOT IN ('received', 'reserved', 'waiting', 'claimed', 'started', 'compensating')"
)


def _noted() -> None:
    """What is there already gets the records that it would have now, so that none may lack one."""
    connection = op.get_bind()
    for asked, noted in ((_PAGES, _page), (_ENDED, _call)):
        for rows in connection.execute(sa.text(asked)).mappings().partitions(500):
            connection.execute(_AUDIT.insert(), [noted(row) for row in rows])


def _page(row: sa.RowMapping) -> dict[str, object]:
    details: dict[str, object] = {
        "calls": row["calls"],
        "first_call_id": row["first_call_id"],
        "sha256": hashlib.sha256(row["entries"]).hexdigest(),
    }
    return _record(row["tenant_id"], row["written_ns"], "calls.page", details)


def _call(row: sa.RowMapping) -> dict[str, object]:
    kept = f"\0\0\0{row['fingerprint']}  ".encode()
    details: dict[str, object] = {
        "agent": row["agent_id"],
        "args_hash": row["args_hash"],
        "call_id": row["call_id"],
        "decision": row["decision_id"],
        "effect": row["effect"],
        # Neither arguments nor a plan nor a caller's roles were kept, and no key.
        "kept_hash": "sha256:" + hashlib.sha256(kept).hexdigest(),
        "session": row["session_id"],
        "state": row["state"],
        "tool": row["tool_name"],
        "turn_group": row["turn_group"],
        "user": row["user_id"],
    }
    return _record(row["tenant_id"], row["created_ns"], "call.ended", details)


def _record(tenant: str, at_ns: int, change: str, details: dict[str, object]) -> dict[str, object]:
    # Its digest is made when it is sealed.
    return {
        "at_ns": at_ns,
        "who": "",
        "why": "",
        "tenant_id": tenant,
        "change": change,
        "details": details,
    }
