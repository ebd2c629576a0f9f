"""Rows of one tenant are hidden from another by PostgreSQL itself."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_NOW = "(SELECT current_setting('toolgate.tenant', true))"
_COLUMNS = {
    "agents": "tenant_id",
    "api_keys": "tenant_id",
    "approvals": "tenant_id",
    "audit_log": "tenant_id",
    "audit_seals": "tenant_id",
    "blobs": "tenant_id",
    "budget_leases": "tenant_id",
    "budget_usage": "tenant_id",
    "call_pages": "tenant_id",
    "decisions": "tenant_id",
    "dynamic_tools": "registered_by_tenant",
    "outbox": "tenant_id",
    "policy_layers": "tenant_id",
    "queue": "tenant_id",
    "rate_limits": "tenant_id",
    "relation_tokens": "tenant_id",
    "relations": "tenant_id",
    "removed_agents": "tenant_id",
    "session_calls": "tenant_id",
    "shelf": "tenant_id",
    "tenant_budgets": "tenant_id",
    "tenant_tool_flags": "tenant_id",
    "tenants": "id",
    "tool_activations": "tenant_id",
    "tool_execution_log": "tenant_id",
}


def upgrade() -> None:
    """No row is touched. A file of SQLite has nothing of the kind."""
    if op.get_bind().dialect.name != "postgresql":
        return
    each: list[str] = []
    for table, column in _COLUMNS.items():
        seen = f"{column} = nullif({_NOW}, '') OR {_NOW} = '*'"
        each += [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY toolgate_tenant ON {table} USING ({seen})",
            # A node of the version before says nothing, and goes on as the owner that it is.
            f"CREATE POLICY toolgate_owner ON {table} TO CURRENT_USER USING ({_NOW} IS NULL)",
        ]
    op.execute(sa.text(f"DO $$ BEGIN {'; '.join(each)}; END $$"))
