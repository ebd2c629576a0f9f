"""What addresses take, as fields: the names that are known, and the schema that is published."""

from typing import Annotated, Any, Literal

import msgspec

from toolgate.executor.several.planned import PlannedCall
from toolgate.executor.several.steps import Step
from toolgate.ledger.approval import Standing
from toolgate.spec.export import FORMATS


def whole(most: int) -> msgspec.Meta:
    """A whole number of the query, from 1 on; it comes as a text."""
    return msgspec.Meta(extra_json_schema={"x-type": "integer", "minimum": 1, "maximum": most})


def one_of(*words: str) -> msgspec.Meta:
    """A text that is one of these."""
    return msgspec.Meta(extra_json_schema={"enum": list(words)})


Text = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=600)]
IdempotencyKey = Annotated[
    str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[!-~]{1,255}$")
]
Flag = Annotated[str, one_of("true", "false", "")]


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing can be said."""


class Task(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The task that a question belongs to."""

    session: Text = ""
    read_only: Flag = "false"
    no_web: Flag = "false"
    # A JSON object, as the body of a call has it; the two flags can only add to it.
    context: str = ""


class Page(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How many, and from where on: `cursor` is the `next` of the page before."""

    limit: Annotated[str, whole(1_000)] = ""
    cursor: str = ""


class Tools(Task):
    """Which tools, and in whose words."""

    format: Annotated[str, one_of(*FORMATS)] = "toolgate"
    q: str = ""
    limit: Annotated[str, whole(100_000)] = ""
    cursor: str = ""


class Explained(Task):
    """Of whom, in which turn, and with which arguments (a JSON object)."""

    tenant: str = ""
    agent: str = ""
    user: str = ""
    persona: str = ""
    role: str = ""
    args: str = ""
    turn_group: str = ""


class Lacking(Task):
    """The rest of what the tenant has."""

    limit: Annotated[str, whole(10_000)] = ""
    cursor: str = ""


class Calls(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which calls."""

    turn_group: str = ""
    state: str = ""
    tool: str = ""
    limit: Annotated[str, whole(500)] = ""
    before: str = ""
    cursor: str = ""


class Waiting(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How long to wait for its end."""

    wait_s: Annotated[
        str, msgspec.Meta(extra_json_schema={"x-type": "number", "minimum": 0, "maximum": 600})
    ] = ""


class Approvals(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which approvals."""

    state: Annotated[str, one_of("all", *Standing)] = "waiting"
    tenant: str = ""
    limit: Annotated[str, whole(1_000)] = ""
    cursor: str = ""


class OfEvents(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Whose events; another tenant's are for an admin's key."""

    tenant: str = ""


class Turn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One conversational attempt; retries share the group."""

    group: Text
    id: str = ""


class Context(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The task that a call belongs to. It can only take tools away."""

    read_only: bool = False
    no_web: bool = False
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    facts: dict[str, str | int | float | bool] = {}


class Around(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What stands around calls that come together."""

    turn: Turn | None = None
    session: Text | None = None
    context: Context | None = None


class Call(Around):
    """One call."""

    tool: Annotated[str, msgspec.Meta(min_length=1, examples=["echo"])]
    args: Annotated[dict[str, Any] | None, msgspec.Meta(examples=[{"text": "hello"}])] = None
    idempotency_key: IdempotencyKey | msgspec.UnsetType = msgspec.UNSET
    wait_s: Seconds | None = None


class Batch(Around):
    """Calls in order, until a critical one fails."""

    calls: Annotated[list[PlannedCall], msgspec.Meta(min_length=1)]


class Chain(Around):
    """Steps that may use each other's results."""

    steps: Annotated[list[Step], msgspec.Meta(min_length=1)]
    mode: Literal["parallel", "sequential"] = "parallel"
    parallel_mutations: bool = False
    undo_on_failure: bool = False


class Message(Around):
    """A model's message, as its API gave it."""

    message: Any


class Undo(Around):
    """What is to be taken back: one of the three."""

    call_id: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    turn_group: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    chain: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    reason: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None


class Approve(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Why, and the code that is shown with arguments too long for a list."""

    reason: str = ""
    seen: str = ""


class Deny(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Why."""

    reason: str = ""
