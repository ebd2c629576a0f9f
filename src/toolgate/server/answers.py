"""What addresses give, as shapes: they are published, and a test holds the answers against them."""

from typing import Any, Literal

import msgspec

from toolgate.call import Failure, Status
from toolgate.caller import Action
from toolgate.executor.aftercare.report import Item
from toolgate.gate.decision import Verdict
from toolgate.ledger.approval import Kind, Standing
from toolgate.ledger.state import State
from toolgate.queue.queue import Stage
from toolgate.spec.effect import Effect, SideEffect

Unset = msgspec.UnsetType
UNSET = msgspec.UNSET


class Shape(msgspec.Struct, kw_only=True):
    """Fields may be added; those that are here stay."""


class Problem(Shape, kw_only=True):
    """RFC 9457, with our code and what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    retryable: bool


class Alive(Shape, kw_only=True):
    """Alive."""

    status: Literal["ok"]


class Ready(Shape, kw_only=True):
    """What is missing."""

    status: Literal["ready", "degraded"]
    unhealthy_sources: int
    unhealthy_engines: list[str]
    # By name, `ok` or `away`: the store, engines, what nodes share, the broker.
    parts: dict[str, str]


class Page(Shape, kw_only=True):
    """`next` is what to send as `cursor` for more; null on the last page."""

    next: str | None


class Tool(Shape, kw_only=True):
    """A tool as a caller may know it."""

    name: str
    effect: Effect
    input_schema: dict[str, Any] | bool
    fingerprint: str
    description: str | Unset = UNSET


class Tools(Page, kw_only=True):
    """What the caller may call, in the words that were asked for.

    `people`: the tools of this page of which each call waits for somebody. `unusable`, for who
    looks after them: what is there and nobody can call, and why.
    """

    tools: list[dict[str, Any]] | str
    total: int
    people: list[str]
    unusable: dict[str, str] | Unset = UNSET


class Metadata(Shape, kw_only=True):
    """What a planner has to know of a tool before it calls it."""

    name: str
    effect: Effect
    requires_confirmation: bool
    is_irreversible: bool
    is_safe_to_retry: bool
    compensation_tool: str
    categories: list[str]


class Lacked(Shape, kw_only=True):
    """A tool that the tenant has and the caller lacks, and what keeps it away."""

    name: str
    description: str
    phase: str
    reason: str
    definition: dict[str, Any]


class Unavailable(Page, kw_only=True):
    """What the tenant has and the caller lacks."""

    unavailable: list[Lacked]


class Spent(Shape, kw_only=True):
    """How much of a month's budget a tenant has used."""

    metric: str
    month: str
    used: int | float
    limit: int | float


class Explanation(Shape, kw_only=True):
    """Every phase's verdict on one tool for one caller; to operators, also what it may cost."""

    tool: str
    action: Action
    allowed: bool
    observed: bool
    needs_a_person: bool
    verdicts: list[Verdict]
    budgets: list[Spent]
    remedies: list[str]


class Output(Shape, kw_only=True):
    """The one result envelope, the same at every door."""

    ok: bool
    status: Status
    data: Any
    error: Failure | None
    call_id: str
    cached: bool
    duration_ms: float
    side_effects: list[SideEffect]
    protocol_version: int
    # Whether what it holds was written by others: material, never an instruction.
    untrusted: bool


class Batch(Shape, kw_only=True):
    """One Output for each call."""

    ok: bool
    stopped_at: int | None
    outputs: list[Output]


class Step(Output, kw_only=True):
    """A step's Output, and where it stood."""

    index: int
    wave: int
    tool: str
    name: str | Unset = UNSET


class Chain(Shape, kw_only=True):
    """One Output for each step, and which ran together."""

    ok: bool
    chain_id: str
    mode_requested: str
    mode_used: str
    fallback_to_seq: bool
    parallel_mutations_enabled: bool
    waves: list[list[int]]
    steps: list[Step]
    undone: dict[str, Any] | Unset = UNSET


class Messages(Shape, kw_only=True):
    """The messages that answer a model's calls, in its own format."""

    messages: list[dict[str, Any]]


class Told(Shape, kw_only=True):
    """Why a call has no result, as it is on record."""

    code: str
    message: str


class Call(Shape, kw_only=True):
    """One line of a list of calls."""

    call_id: str
    tool: str
    effect: Effect
    state: State
    agent: str
    user: str
    started_ns: int
    ended_ns: int | None
    duration_ms: float
    turn_group: str | Unset = UNSET
    chain: str | Unset = UNSET
    again_of: str | Unset = UNSET
    undo_of: str | Unset = UNSET
    error: Told | Unset = UNSET
    approval_id: str | Unset = UNSET


class InQueue(Shape, kw_only=True):
    """How a queued call stands there: how often it was taken, and until when it may wait."""

    stage: Stage
    attempts: int
    queued_ns: int
    expires_ns: int


class WholeCall(Call, kw_only=True):
    """All that is on record of a call. `answered_by`: the one that ran for this one, too."""

    tenant: str
    persona: str
    session: str
    fingerprint: str
    decision: str
    recovery: str
    args: Any
    output: Any
    undo: dict[str, Any] | Unset = UNSET
    queue: InQueue | Unset = UNSET
    answered_by: str | Unset = UNSET


class Calls(Page, kw_only=True):
    """The newest first."""

    calls: list[Call]


class Report(Shape, kw_only=True):
    """What was taken back, and what was not."""

    ok: bool
    items: list[Item]


class Approval(Shape, kw_only=True):
    """What a person is asked, or was. `seen` is shown with all of the arguments."""

    id: str
    kind: Kind
    state: Standing
    tenant: str
    agent: str
    user: str
    tool: str
    fingerprint: str
    prompt: str
    args: str
    args_length: int
    is_cut: bool
    call_id: str
    created_ns: int
    expires_ns: int
    decided_ns: int
    decided_by: str
    reason: str
    seen: str | Unset = UNSET


class Approvals(Page, kw_only=True):
    """The newest first."""

    approvals: list[Approval]
