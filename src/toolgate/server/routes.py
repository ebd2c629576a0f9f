"""The table of this door: every address, what answers it, for whom, and what it takes and gives."""

from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from typing import Any

from toolgate import __version__
from toolgate.runtime import Runtime
from toolgate.server import answers, approvals, batches, calls, fields, health, ledger, me, tools
from toolgate.server.admin import routes as admin
from toolgate.server.admin.gives import GIVES
from toolgate.server.events import events
from toolgate.server.messages import run_message
from toolgate.server.openapi import document
from toolgate.server.reply import Reply
from toolgate.server.request import Request
from toolgate.server.rights import Right, roles
from toolgate.server.route import Route, Table
from toolgate.tenancy.keys import Role

_NOBODY: frozenset[Role] = frozenset()
_CALLERS = roles(Right.CALL)
_ASKERS = roles(Right.CALL, Right.EXPLAIN)
_HEARERS = roles(Right.CALL, Right.LOOK)
_DECIDERS = roles(Right.CALL, Right.APPROVE)
_ASKED = ("policy_unavailable", "relations_unavailable", "store_unavailable")
# What a call can be refused with, whichever way it is made.
_CALL = (
    "tool_not_found",
    "permission_denied",
    "invalid_arguments",
    "idempotency_conflict",
    "in_progress",
    "rate_limited",
    "budget_exceeded",
    "limits_unavailable",
    "overloaded",
    "out_of_time",
    "provider_unavailable",
    "circuit_open",
    "unsupported_provider",
    "approval_denied",
    *_ASKED,
)


def _shown(
    path: str,
    summary: str,
    shown: Callable[[Runtime], Awaitable[Reply]],
    gives: Any = None,
    whose: frozenset[Role] = _NOBODY,
) -> Route:
    async def answer(request: Request) -> Reply:
        return await shown(request.gate)

    return Route("GET", path, summary, answer, shown=shown, gives=gives, roles=whose)


async def _description(_gate: Runtime) -> Reply:
    return Reply(200, _written())


@cache
def _written() -> bytes:
    return document(TABLE.routes, __version__)


_OPEN = (
    _shown("/healthz", "Whether the process is alive.", health.alive, answers.Alive),
    _shown("/readyz", "Whether every source and engine is there.", health.ready, answers.Ready),
    _shown("/metrics", "Numbers for Prometheus.", health.metrics, whose=roles(Right.HOUSE)),
    _shown("/openapi.json", "This description.", _description, dict[str, Any]),
)
_TOOLS = (
    Route(
        "GET",
        "/v1/me",
        "Whom the key speaks for.",
        me.show_me,
        gives=me.Me,
        roles=frozenset(Role),
        tagged=True,
    ),
    Route(
        "GET",
        "/v1/tools",
        "What the caller may call, by name.",
        tools.list_tools,
        roles=_CALLERS,
        query=fields.Tools,
        gives=answers.Tools,
        codes=_ASKED,
        tagged=True,
    ),
    Route(
        "GET",
        "/v1/tools/{+name}",
        "One tool that the caller may call.",
        tools.show_tool,
        roles=_CALLERS,
        query=fields.Task,
        gives=answers.Tool,
        codes=("tool_not_found", *_ASKED),
        tagged=True,
    ),
    Route(
        "GET",
        "/v1/tools/{+name}/metadata",
        "What a planner has to know of a tool before it calls it.",
        tools.show_metadata,
        roles=_CALLERS,
        query=fields.Task,
        gives=answers.Metadata,
        codes=("tool_not_found", *_ASKED),
        tagged=True,
    ),
    Route(
        "GET",
        "/v1/tools/{+name}/explain",
        "Every phase's verdict on a tool; for an admin, of any agent.",
        tools.explain_tool,
        roles=_ASKERS,
        query=fields.Explained,
        gives=answers.Explanation,
        codes=("tool_not_found", "invalid_arguments", *_ASKED),
    ),
    Route(
        "GET",
        "/v1/unavailable",
        "What the tenant has and the caller lacks, and why.",
        tools.list_unavailable,
        roles=_CALLERS,
        query=fields.Lacking,
        gives=answers.Unavailable,
        codes=_ASKED,
        tagged=True,
    ),
)
_CALLS = (
    Route(
        "POST",
        "/v1/call",
        "One call; a tool's own failure is an Output too.",
        calls.call,
        roles=_CALLERS,
        body=fields.Call,
        gives=answers.Output,
        codes=_CALL,
        streams=True,
    ),
    Route(
        "POST",
        "/v1/batch",
        "Calls in order, until a critical one fails.",
        batches.run_batch,
        roles=_CALLERS,
        body=fields.Batch,
        gives=answers.Batch,
        codes=_CALL,
    ),
    Route(
        "POST",
        "/v1/chain",
        "Steps that may use each other's results.",
        batches.run_chain,
        roles=_CALLERS,
        body=fields.Chain,
        gives=answers.Chain,
        codes=_CALL,
    ),
    Route(
        "POST",
        "/v1/messages",
        "A model's message in, the messages that answer its calls out.",
        run_message,
        roles=_CALLERS,
        body=fields.Message,
        gives=answers.Messages,
        codes=_CALL,
    ),
    Route(
        "GET",
        "/v1/calls/{id}",
        "One of the caller's own calls, also while it runs or waits.",
        ledger.show_call,
        roles=_CALLERS,
        query=fields.Waiting,
        gives=answers.WholeCall,
        codes=("call_not_found", "rate_limited", "store_unavailable"),
    ),
    Route(
        "GET",
        "/v1/ledger",
        "The caller's own side effects, the newest first.",
        ledger.list_calls,
        roles=_CALLERS,
        query=fields.Calls,
        gives=answers.Calls,
        codes=("store_unavailable",),
        tagged=True,
    ),
    Route(
        "POST",
        "/v1/undo",
        "Take back what the caller did: one call, a turn group or a chain.",
        ledger.run_undo,
        roles=_CALLERS,
        body=fields.Undo,
        gives=answers.Report,
        codes=("call_not_found", *_CALL),
    ),
    Route(
        "GET",
        "/v1/events",
        "What happens in the tenant, as it happens; an agent hears of its own.",
        events,
        roles=_HEARERS,
        query=fields.OfEvents,
        codes=("rate_limited",),
        streams=True,
    ),
)
_APPROVALS = (
    Route(
        "GET",
        "/v1/approvals",
        "What persons are asked, the newest first.",
        approvals.list_approvals,
        roles=_DECIDERS,
        query=fields.Approvals,
        gives=answers.Approvals,
        codes=("store_unavailable",),
        tagged=True,
    ),
    Route(
        "GET",
        "/v1/approvals/{id}",
        "One of them, with all of its arguments.",
        approvals.show_approval,
        roles=_DECIDERS,
        gives=answers.Approval,
        codes=("approval_not_found", "store_unavailable"),
        tagged=True,
    ),
    Route(
        "POST",
        "/v1/approvals/{id}/approve",
        "Agree to this very call, once.",
        approvals.approve,
        roles=_DECIDERS,
        body=fields.Approve,
        gives=answers.Approval,
        codes=("approval_not_found", "permission_denied", "store_unavailable"),
        needs_body=False,
    ),
    Route(
        "POST",
        "/v1/approvals/{id}/deny",
        "Say no to it.",
        approvals.deny,
        roles=_DECIDERS,
        body=fields.Deny,
        gives=answers.Approval,
        codes=("approval_not_found", "permission_denied", "store_unavailable"),
        needs_body=False,
    ),
)


def _administered() -> Iterator[Route]:
    """The rows of `/v1/admin/…`."""
    for (head, names), methods in admin.ROUTES.items():
        for method, row in methods.items():
            yield Route(
                method,
                admin.template(head, names),
                admin.summary(row),
                admin.answer(method, row),
                query=row.fields if method in {"GET", "DELETE"} else fields.Nothing,
                body=None if method in {"GET", "DELETE"} else row.fields,
                gives=GIVES.get((head, names, method), dict[str, Any]),
                roles=admin.roles(head, method, row),
                codes=admin.CODES,
                tagged=method == "GET",
                needs_body=False,
                reads_query=True,
            )


TABLE = Table((*_OPEN, *_TOOLS, *_CALLS, *_APPROVALS, *_administered()))
