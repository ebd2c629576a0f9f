"""Which shape each row of `/v1/admin/…` gives."""

from collections.abc import Mapping
from typing import Any

from toolgate.server.admin import answers as shape
from toolgate.server.admin import served
from toolgate.server.answers import Call, Calls, Output, Report

GIVES: Mapping[tuple[str, int, str], Any] = {
    ("tenants", 0, "GET"): shape.Tenants,
    ("tenants", 1, "PUT"): shape.TenantPut,
    ("agents", 0, "GET"): shape.Agents,
    ("agents", 1, "PUT"): shape.AgentPut,
    ("agents", 1, "DELETE"): shape.Removed,
    ("flags", 0, "GET"): shape.Flags,
    ("flags", 0, "PUT"): shape.Flag,
    ("activations", 0, "PUT"): shape.Activation,
    ("keys", 0, "GET"): shape.Keys,
    ("keys", 0, "POST"): shape.FreshKey,
    ("keys", 1, "DELETE"): shape.Revoked,
    ("keys/rotate", 1, "POST"): shape.RotatedKey,
    ("layers", 0, "GET"): shape.Layers,
    ("layers", 1, "PUT"): shape.Layer,
    ("layers", 1, "DELETE"): shape.Removed,
    ("roles", 0, "GET"): shape.Roles,
    ("roles", 1, "PUT"): shape.RolePut,
    ("roles", 1, "DELETE"): shape.Removed,
    ("personas", 0, "GET"): shape.Personas,
    ("personas", 1, "PUT"): shape.PersonaPut,
    ("personas", 2, "PUT"): shape.Restriction,
    ("relations", 0, "GET"): shape.Relations,
    ("relations", 0, "POST"): shape.Related,
    ("policies", 0, "GET"): shape.Policies,
    ("policies", 1, "PUT"): shape.Module,
    ("policies", 1, "DELETE"): shape.Module,
    ("budgets", 0, "GET"): shape.Budgets,
    ("budgets", 0, "PUT"): shape.Budget,
    ("limits", 0, "GET"): shape.Limits,
    ("limits", 0, "PUT"): shape.LimitPut,
    ("usage", 0, "GET"): shape.Usage,
    ("audit", 0, "GET"): shape.Records,
    ("calls", 0, "GET"): Calls,
    ("calls", 1, "GET"): shape.LinkedCall,
    ("calls/settle", 1, "POST"): Call,
    ("calls/again", 1, "POST"): Output,
    ("undo", 0, "POST"): Report,
    ("tools", 0, "GET"): shape.Catalog,
    ("tools", 1, "GET"): dict[str, Any],
    ("export", 0, "GET"): shape.ExportedTools,
    ("servers", 0, "GET"): served.McpServers,
    ("servers", 1, "PUT"): served.McpServerPut,
    ("servers", 1, "DELETE"): shape.Removed,
    ("servers/test", 1, "POST"): served.McpServerTested,
    ("servers/diff", 1, "GET"): served.McpServerWaiting,
    ("servers/approve", 1, "POST"): served.McpServerApproved,
    ("reload", 0, "POST"): shape.Reloaded,
    ("health", 0, "GET"): shape.HouseHealth,
}
