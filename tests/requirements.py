"""The requirement ids, and how far each is built. Tests cite them."""

from enum import Enum


class Built(Enum):
    """How far a requirement is kept by what is here."""

    WHOLE = "whole"
    PARTLY = "partly"
    NOT_YET = "not yet"


WHOLE, PARTLY, NOT_YET = Built.WHOLE, Built.PARTLY, Built.NOT_YET

REQUIREMENTS: dict[str, tuple[Built, str]] = {
    "C1": (WHOLE, "ToolSpec: every field, contradictions refused"),
    "C2": (PARTLY, "sources: files, HTTP, OpenAPI, MCP, plugins, database, Python; not by agents"),
    "C3": (WHOLE, "export to OpenAI, Anthropic, MCP and prompt"),
    "C4": (WHOLE, "three tiers of visibility, unavailable with reasons"),
    "C5": (WHOLE, "default catalog seeded idempotently, operators' flags kept"),
    "C6": (NOT_YET, "dynamic tools"),
    "C7": (NOT_YET, "search"),
    "G1": (WHOLE, "four phases in order, the first refusal ends it"),
    "G2": (WHOLE, "actions view, request, enable; deny by default"),
    "G3": (WHOLE, "the bundled Rego policy, extended, replaced, hot-reloaded"),
    "G4": (WHOLE, "cascading layers that only narrow"),
    "G5": (WHOLE, "persona and role restrictions, deny first"),
    "G6": (WHOLE, "decisions explain themselves; hidden looks like missing"),
    "G7": (WHOLE, "Rego in-process and OPA, relations in the store and SpiceDB"),
    "G8": (WHOLE, "decision cache in memory and Redis; a revoke is never late"),
    "X1": (WHOLE, "one call for every kind of tool"),
    "X2": (
        WHOLE,
        "order: resolve, gate, validate, limits, people, supersede, once, run, bound, record",
    ),
    "X3": (WHOLE, "extensions with hooks and priorities; the built-in links stand among them"),
    "X4": (WHOLE, "deadlines, attempts, breakers, bulkhead; what streams is partial on a timeout"),
    "X5": (WHOLE, "errors with stable codes"),
    "X6": (WHOLE, "output limits"),
    "X7": (WHOLE, "batches and chains"),
    "X8": (WHOLE, "parsing what a model says"),
    "X9": (WHOLE, "budget: plans, metrics of one's own; what did not happen costs nothing"),
    "X10": (WHOLE, "rate limits per tenant, persona and tool, shared in Redis"),
    "X11": (WHOLE, "feature flags, on and off"),
    "S1": (WHOLE, "effect policy decides retry, cancel, undo"),
    "S2": (WHOLE, "once-only: one key, one effect, the first answer again"),
    "S3": (WHOLE, "a side effect is on record before it happens; recovery after a crash; settling"),
    "S4": (WHOLE, "undo in reverse order, once each, by today's permission; resumable"),
    "S5": (WHOLE, "newer messages before an irreversible call: the agent's policy decides"),
    "S6": (WHOLE, "confirmation and approval: bound, single use, with expiry, on record"),
    "S7": (WHOLE, "events to the turn, to subscribers and to a signed webhook"),
    "P1": (WHOLE, "Python functions and modules, async or not"),
    "P2": (WHOLE, "HTTP: any REST call, credentials from named secrets; OpenAPI documents"),
    "P3": (WHOLE, "MCP client, both revisions, stdio and HTTP: tools, resources, prompts; healed"),
    "P4": (WHOLE, "shell commands that cannot be injected, in a sandbox"),
    "P5": (WHOLE, "Composio: the real SDK, actions as tools, accounts by tenant and user"),
    "P6": (WHOLE, "queued calls by workers, from the store or over Kafka; once by the ledger"),
    "P7": (WHOLE, "custom providers by program, entry point and setting, with their suite"),
    "V1": (WHOLE, "MCP server, both revisions, over HTTP and standard input"),
    "V2": (WHOLE, "REST with its description, library here and on a server"),
    "V3": (WHOLE, "API keys and tokens; one tenant never sees another's"),
    "V4": (NOT_YET, "console"),
    "V5": (WHOLE, "command line for all that is here, on the store and on a server"),
    "T1": (WHOLE, "the 39 tools, at every door"),
    "T2": (WHOLE, "the plugins' tools, canvases among them"),
    "T3": (WHOLE, "the agent system's 19 tools, with their schemas"),
    "T4": (WHOLE, "file tools stay inside their roots; 1 MB at once"),
    "T5": (WHOLE, "native math, each beside plain Python in the benchmark"),
    "U1": (WHOLE, "plugins: manifests, dependencies, agreed to by fingerprint; Agent Plugins 1.0"),
    "U2": (WHOLE, "reload without a restart; calls in flight finish, broken versions wait"),
    "U3": (WHOLE, "settings of plugins and of their tools, checked against a schema"),
    "L1": (NOT_YET, "feedback"),
    "L2": (NOT_YET, "used"),
    "D1": (PARTLY, "tables of A section 5, tenancy, relations, audit, journal; SQLite, PostgreSQL"),
    "D2": (PARTLY, "Redis for decisions, notices, events, rate limits; once-only is the store's"),
    "O1": (WHOLE, "metrics, traces, logs"),
    "O2": (WHOLE, "every execution and refusal is on record, hash-chained"),
}
