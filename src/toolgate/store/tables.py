"""The tables of what exists and who there is, once, for SQLite and PostgreSQL."""

import sqlalchemy as sa

from toolgate.store.metadata import Json, Moment, metadata


def _tool_name() -> sa.Column[str]:
    return sa.Column(
        "tool_name",
        sa.Text,
        sa.ForeignKey("tool_catalog.name", ondelete="CASCADE"),
        primary_key=True,
    )


tool_catalog = sa.Table(
    "tool_catalog",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    # NULL: the operator has said nothing, so the definition decides.
    sa.Column("enabled", sa.Boolean),
    sa.Column("description", sa.Text),
    sa.Column("params", Json, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    # NULL: the tool is defined elsewhere and this row only carries flags.
    sa.Column("definition", Json),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

tenant_tool_flags = sa.Table(
    "tenant_tool_flags",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    _tool_name(),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

persona_tool_restrictions = sa.Table(
    "persona_tool_restrictions",
    metadata,
    sa.Column("persona_id", sa.Text, primary_key=True),
    _tool_name(),
    sa.Column("allowed", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("updated_at", Moment, nullable=False),
)

# Pure calls by the hundred: one row holds all that a tenant made between two writes.

dynamic_tools = sa.Table(
    "dynamic_tools",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("registered_by_tenant", sa.Text, nullable=False),
    sa.Column("registered_by_persona", sa.Text),
    sa.Column("source_type", sa.Text, nullable=False),
    sa.Column("source_url", sa.Text),
    sa.Column("input_schema", Json, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
)

tenants = sa.Table(
    "tenants",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    # The budget plan; NULL: the one that the settings name.
    sa.Column("plan", sa.Text),
    sa.Column("created_at", Moment, nullable=False),
)

agents = sa.Table(
    "agents",
    metadata,
    sa.Column(
        "tenant_id", sa.Text, sa.ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("capsule_mode", sa.Text, nullable=False),
    # What to do when newer messages wait before an irreversible call; NULL: supersede.
    sa.Column("newer_messages", sa.Text),
    sa.Column("created_at", Moment, nullable=False),
)

# Agents that are gone, and are not there again: their names may do nothing.
removed_agents = sa.Table(
    "removed_agents",
    metadata,
    sa.Column(
        "tenant_id", sa.Text, sa.ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("removed_at", Moment, nullable=False),
)

tool_activations = sa.Table(
    "tool_activations",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("agent_id", sa.Text, primary_key=True),
    _tool_name(),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("policy_overrides", Json, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.ForeignKeyConstraint(
        ["tenant_id", "agent_id"], ["agents.tenant_id", "agents.id"], ondelete="CASCADE"
    ),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("agent_id", sa.Text, nullable=False),
    # Whom the key stands for beyond its agent.
    sa.Column("user_id", sa.Text, nullable=False, server_default=""),
    sa.Column("persona_id", sa.Text, nullable=False, server_default=""),
    sa.Column("roles", Json, nullable=False, server_default="[]"),
    sa.Column("revoked", sa.Boolean, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    # 0: it has no end, or was never used.
    sa.Column("expires_ns", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("last_used_ns", sa.BigInteger, nullable=False, server_default="0"),
)

# What this house signs by; nobody outside of it has ever seen one.
house_secrets = sa.Table(
    "house_secrets",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
)

revisions = sa.Table(
    "revisions",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

# What a role, or everybody, is left with. Empty tenant: in every tenant; empty role: everybody.

policy_layers = sa.Table(
    "policy_layers",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    # NULL: this layer allows all that the others leave.
    sa.Column("allow", Json),
    sa.Column("deny", Json, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

personas = sa.Table(
    "personas",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("can_add_tools", sa.Boolean, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

policy_modules = sa.Table(
    "policy_modules",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

# Tool files that operators imported, beside those in the settings' folder.
tool_files = sa.Table(
    "tool_files",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

# MCP servers that operators added, beside those of the settings.
mcp_servers = sa.Table(
    "mcp_servers",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("settings", Json, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

# What of a server's tools is agreed to. The row without a tool says that the server was seen.
mcp_pins = sa.Table(
    "mcp_pins",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("tool", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False),
    # JSON as text: PostgreSQL's own type refuses some that a server can send.
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

# What built-in tools keep between calls, each in its place.
shelf = sa.Table(
    "shelf",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    # JSON as text: PostgreSQL's own type refuses some that a caller can send.
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("created_ns", sa.BigInteger, nullable=False),
    sa.Column("updated_ns", sa.BigInteger, nullable=False),
)

relations = sa.Table(
    "relations",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    # The subject first: a question starts from who asks.
    sa.Column("subject_kind", sa.Text, primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True),
    sa.Column("subject_relation", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("relation", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Index(None, "tenant_id", "kind", "name"),
    sqlite_with_rowid=False,
)

# How fresh relations that are kept elsewhere have to be read, by tenant.

relation_tokens = sa.Table(
    "relation_tokens",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
)

# The links of each tenant's chain: a hash over the one before and the digests of the rows in it.

# Each decision once, whatever the number of calls that it let pass; calls name it.

decisions = sa.Table(
    "decisions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("first_ns", sa.BigInteger, nullable=False),
    sa.Column("last_ns", sa.BigInteger, nullable=False),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("tool_name", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("allowed", sa.Boolean, nullable=False),
    # Let pass because the policy only observes.
    sa.Column("observed", sa.Boolean, nullable=False),
    sa.Column("phase", sa.Text, nullable=False),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("policy_revision", sa.Text, nullable=False),
    # What the policy was asked, as JSON: enough to ask again.
    sa.Column("input", sa.Text, nullable=False),
    sa.Index(None, "tenant_id", "last_ns"),
    sa.Index(None, "last_ns"),
)

# What a session did, for policies that look back. Kept for a day, and only while one does.

# What waits for a person, and what became of it.

# What was used in a period. Amounts are in millionths, so that sums are exact.

# What processes have set aside of a budget, and how much of it they have spent.

# What an operator allows a tenant of a metric in a month, whatever its plan says.

# What an operator allows in a time. Empty: of any tenant, persona or tool.

# Outputs that were too large to be answered whole, by their content.

# Events for others, written with what they tell of and deleted when they were sent.
