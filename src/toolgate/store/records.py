"""The tables of what happened: calls, approvals, budgets, outputs, events, the audit."""

import sqlalchemy as sa

from toolgate.store.metadata import Json, Moment, metadata, partial

OPEN_STATES = "state IN ('claimed', 'started', 'compensating')"

tool_execution_log = sa.Table(
    "tool_execution_log",
    metadata,
    sa.Column("call_id", sa.Text, primary_key=True),
    sa.Column("tool_name", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("effect", sa.Text, nullable=False),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("agent_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("persona_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("turn_group", sa.Text, nullable=False),
    sa.Column("caller_kind", sa.Text, nullable=False),
    sa.Column("args_hash", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    # NULL while the call runs, and when its end is not known.
    sa.Column("success", sa.Boolean),
    sa.Column("duration_ms", sa.Float, nullable=False),
    sa.Column("error_code", sa.Text, nullable=False),
    sa.Column("error_message", sa.Text, nullable=False),
    sa.Column("created_ns", sa.BigInteger, nullable=False),
    # The row of `decisions` that let it pass.
    sa.Column("decision_id", sa.Text, nullable=False, server_default=""),
    sa.Column("chain_id", sa.Text, nullable=False, server_default=""),
    sa.Column("chain_index", sa.Integer, nullable=False, server_default="0"),
    sa.Column("planned", sa.Text, nullable=False, server_default=""),
    sa.Column("turn_id", sa.Text, nullable=False, server_default=""),
    # Once-only. NULL: the call is its own business, or its key was given to another.
    sa.Column("once_scope", sa.Text, nullable=False, server_default=""),
    sa.Column("once_key", sa.Text),
    sa.Column("digest", sa.Text, nullable=False, server_default=""),
    sa.Column("recovery", sa.Text, nullable=False, server_default="park"),
    sa.Column("owner", sa.Text, nullable=False, server_default=""),
    sa.Column("fence", sa.BigInteger, nullable=False, server_default="0"),
    # By the database's clock. NULL: its owner is taken to be there.
    sa.Column("lease_ns", sa.BigInteger),
    # Until when the key is taken, or a person may agree.
    sa.Column("expires_ns", sa.BigInteger),
    sa.Column("tried", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("permanent", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("approval_id", sa.Text, nullable=False, server_default=""),
    # JSON, without secrets; NULL where there is none, or it was too large to keep.
    sa.Column("args", sa.Text),
    sa.Column("result", sa.Text),
    sa.Column("plan", sa.Text),
    sa.Column("undo_until_ns", sa.BigInteger),
    sa.Column("charges", sa.Text, nullable=False, server_default=""),
    sa.Column("again_of", sa.Text, nullable=False, server_default=""),
    sa.Column("undo_of", sa.Text, nullable=False, server_default=""),
    sa.Column("wanted_by", sa.Text, nullable=False, server_default=""),
    sa.Column("ended_ns", sa.BigInteger, nullable=False, server_default="0"),
    # JSON. Whose roles, context or delegation it ran with; empty where there were none.
    sa.Column("task", sa.Text, nullable=False, server_default=""),
    sa.Index(None, "tool_name", "created_ns"),
    sa.Index(None, "tenant_id", "created_ns"),
    sa.Index("uq_tool_execution_log_once", "tenant_id", "once_scope", "once_key", unique=True),
    # What somebody is at, or waits for: few rows, looked for again and again.
    partial(
        "ix_tool_execution_log_open",
        "lease_ns",
        where=OPEN_STATES,
    ),
    partial(
        "ix_tool_execution_log_turn",
        "tenant_id",
        "turn_group",
        "created_ns",
        where="turn_group <> ''",
    ),
    partial(
        "ix_tool_execution_log_chain",
        "tenant_id",
        "chain_id",
        "created_ns",
        where="chain_id <> ''",
    ),
    # What an operator has to settle.
    # What operators ran again.
    partial(
        "ix_tool_execution_log_again",
        "tenant_id",
        "again_of",
        where="again_of <> ''",
    ),
    partial(
        "ix_tool_execution_log_unknown",
        "tenant_id",
        "created_ns",
        where="state = 'unknown'",
    ),
    # Ids sort by time, so rows are appended to the one tree that the key needs anyway.
    sqlite_with_rowid=False,
)

call_pages = sa.Table(
    "call_pages",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("first_call_id", sa.Text, primary_key=True),
    sa.Column("written_ns", sa.BigInteger, nullable=False),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("entries", sa.LargeBinary, nullable=False),
    sa.Index(None, "tenant_id", "written_ns"),
)

audit_log = sa.Table(
    "audit_log",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at_ns", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    # Empty: it concerns everyone.
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("change", sa.Text, nullable=False),
    sa.Column("details", Json, nullable=False),
    # Of this row's content; and the seal that holds it in its tenant's chain, once there is one.
    sa.Column("digest", sa.Text, nullable=False, server_default=""),
    sa.Column("seal", sa.BigInteger),
    sa.Index(None, "tenant_id", "id"),
    partial(
        "ix_audit_log_unsealed",
        "id",
        where="seal IS NULL",
    ),
)

audit_seals = sa.Table(
    "audit_seals",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("at_ns", sa.BigInteger, nullable=False),
    sa.Column("records", sa.Integer, nullable=False),
    sa.Column("first_id", sa.BigInteger, nullable=False),
    sa.Column("last_id", sa.BigInteger, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)

session_calls = sa.Table(
    "session_calls",
    metadata,
    sa.Column("call_id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("turn_group", sa.Text, nullable=False),
    sa.Column("tool_name", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("args", sa.Text, nullable=False),
    sa.Column("created_ns", sa.BigInteger, nullable=False),
    sa.Index(None, "tenant_id", "session_id", "created_ns"),
    sa.Index(None, "tenant_id", "turn_group", "created_ns"),
    sa.Index(None, "created_ns"),
)

UNDECIDED = "state IN ('waiting', 'approved')"

approvals = sa.Table(
    "approvals",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    # Of all that was agreed to; a call that differs in anything is another.
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("call_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("tool_name", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("agent_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("args", sa.Text, nullable=False),
    sa.Column("prompt", sa.Text, nullable=False),
    sa.Column("policy_revision", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("created_ns", sa.BigInteger, nullable=False),
    sa.Column("expires_ns", sa.BigInteger, nullable=False),
    sa.Column("decided_ns", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("decided_by", sa.Text, nullable=False, server_default=""),
    sa.Column("reason", sa.Text, nullable=False, server_default=""),
    partial(
        "uq_approvals_open",
        "tenant_id",
        "hash",
        unique=True,
        where=UNDECIDED,
    ),
    sa.Index(None, "tenant_id", "created_ns"),
)

budget_usage = sa.Table(
    "budget_usage",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("metric", sa.Text, primary_key=True),
    sa.Column("period", sa.Text, primary_key=True),
    sa.Column("used", sa.BigInteger, nullable=False),
)

budget_leases = sa.Table(
    "budget_leases",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("metric", sa.Text, nullable=False),
    sa.Column("period", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("granted", sa.BigInteger, nullable=False),
    sa.Column("spent", sa.BigInteger, nullable=False),
    sa.Column("lease_ns", sa.BigInteger, nullable=False),
    sa.Index(None, "tenant_id", "metric", "period"),
)

tenant_budgets = sa.Table(
    "tenant_budgets",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("metric", sa.Text, primary_key=True),
    sa.Column("most", sa.BigInteger, nullable=False),
)

rate_limits = sa.Table(
    "rate_limits",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("persona_id", sa.Text, primary_key=True),
    sa.Column("tool_name", sa.Text, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("per", sa.Float, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

blobs = sa.Table(
    "blobs",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    # Whose output it is: what one agent was answered is not another's.
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("tool_name", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("created_ns", sa.BigInteger, nullable=False),
    sa.Index(None, "created_ns"),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at_ns", sa.BigInteger, nullable=False),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    # Events of one key are sent in their order.
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_ns", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index(None, "key", "id"),
    sqlite_autoincrement=True,
)

# In the words of the indices: with values in their places none of them would be used.
WAITS = "state = 'waiting'"
AWAY = "state IN ('sent', 'taken')"
DEAD = "state = 'dead'"
UNTOLD = "told = 0 AND state IN ('done', 'dead')"
# `of` says whose columns they are.
OPEN_IN_ORDER = "{of}order_key <> '' AND {of}state IN ('waiting', 'sent', 'taken')"
RUNS_IN_ORDER = "{of}order_key <> '' AND {of}state = 'taken'"

queue = sa.Table(
    "queue",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
    sa.Column("call_id", sa.Text, nullable=False, unique=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("tool_name", sa.Text, nullable=False),
    sa.Column("agent_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    # Whose it is: what one agent queued is not another's to read.
    sa.Column("scope", sa.Text, nullable=False),
    # Calls of one key are taken one after the other.
    sa.Column("order_key", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    # As it goes over the wire; empty once it is over.
    sa.Column("message", sa.LargeBinary, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("fence", sa.Integer, nullable=False, server_default="0"),
    # When it may be taken, is sent again, or is nobody's any more: as its state is.
    sa.Column("due_ns", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("queued_ns", sa.BigInteger, nullable=False),
    sa.Column("expires_ns", sa.BigInteger, nullable=False),
    sa.Column("ended_ns", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("output", sa.LargeBinary, nullable=False),
    sa.Column("why", sa.Text, nullable=False, server_default=""),
    # Whether those who read results have been told.
    sa.Column("told", sa.Integer, nullable=False, server_default="0"),
    partial("ix_queue_waiting", "tenant_id", "id", where=WAITS),
    partial("ix_queue_orders", "tenant_id", "order_key", "id", where=WAITS),
    partial("ix_queue_held", "due_ns", where=AWAY),
    partial("ix_queue_ordered", "order_key", "id", where=OPEN_IN_ORDER.format(of="")),
    partial("ix_queue_running", "order_key", where=RUNS_IN_ORDER.format(of="")),
    partial("ix_queue_untold", "id", where=UNTOLD),
    partial("ix_queue_dead", "id", where=DEAD),
    sa.Index(None, "ended_ns"),
    sqlite_autoincrement=True,
)
