"""What flows through the house: frozen values, made at a door and handed inwards."""

import itertools
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol

import msgspec
import orjson

from toolgate.asked import PLAINLY, Asked, Question
from toolgate.caller import Caller
from toolgate.errors import CannotAsk, InvalidRequest
from toolgate.identity import texts
from toolgate.spec.effect import CallerKind, Execution, SideEffect
from toolgate.spec.tool import ToolSpec

Status = Literal[
    "success",
    "error",
    "pending_approval",
    "queued",
    "skipped",
    "superseded",
    "partial",
    "unknown",
]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a call: told to its turn, to subscribers and to the outbox.

    `id` is unique: whoever is told twice can know it.
    """

    id: str
    kind: str
    at_ns: int
    tenant: str
    agent: str
    tool: str
    call_id: str
    turn_group: str = ""
    turn_id: str = ""
    payload: dict[str, Any] = {}


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One conversational attempt. Retries and superseding attempts share the group.

    `has_pending_messages` is asked immediately before an irreversible call: whether newer messages
    wait. `absorb_messages` takes them in, for agents whose policy is to absorb. `emit` is told of
    each side effect. All three may be async.
    """

    group: str
    id: str = ""
    has_pending_messages: Callable[[], bool | Awaitable[bool]] | None = None
    absorb_messages: Callable[[], object] | None = None
    emit: Callable[[Event], object] | None = None

    def __post_init__(self) -> None:
        """A turn without a group would belong to every other one without."""
        texts("Turn", group=self.group, id=self.id)
        if not self.group:
            raise InvalidRequest("A Turn needs a group: Turn(group='t-17').")
        for name in ("has_pending_messages", "absorb_messages", "emit"):
            hook = getattr(self, name)
            if hook is not None and not callable(hook):
                raise InvalidRequest(f"{name!r} of a Turn is a function.")


class Grant(msgspec.Struct, frozen=True):
    """The gate's yes: what was decided, on which catalog, world and policy.

    Only `gate` builds one. `decision` names the decision on record. `needs_another`: the person is
    another one than the user.
    """

    caller: Caller
    spec: ToolSpec
    catalog_revision: int
    tenancy_revision: int
    needs_a_person: bool
    policy_revision: str = ""
    decision: str = ""
    needs_another: bool = False
    # When what the caller came by ends, by the wall clock; 0: it does not.
    end_ns: int = 0


class Charge(msgspec.Struct):
    """What is held of a budget for a call: whose lease it is, how much, in millionths, and where in
    the result the real amount stands, if not here.

    Whoever writes the call's end has `taken` it from then on, and says what it cost with `paid`.
    """

    lease: str
    amount: int
    at: str = ""
    paid: Callable[[int], None] | None = None
    taken: bool = False


class Hold(Protocol):
    """What is held of budgets for a call that may wait for a person."""

    def let_go(self) -> None:
        """As long as it waits, others may have it."""
        ...

    async def again(self, call: "Call") -> "Call":
        """Hold it once more, or `BudgetExceeded`; the call with what it holds now."""
        ...


class Call(msgspec.Struct, frozen=True):
    """One call on its way to a provider. It cannot be built without a grant.

    A Python tool that has a parameter of this type is handed its own call.
    """

    __toolgate_injected__: ClassVar[bool] = True

    id: str
    grant: Grant
    args: dict[str, Any]
    turn: Turn | None
    started_ns: int
    # On the monotonic clock: no link and no provider goes on after this.
    until_ns: int
    asked: Asked = PLAINLY
    # The approval that it runs on; without one it may need, it is answered from the record only.
    approval: str = ""
    may_start: bool = True
    # What the far side knows this call by, also when it is tried again.
    downstream_key: str = ""
    # On the monotonic clock, as `until_ns`: how long it took does not depend on the time of day.
    began_ns: int = 0
    # What its end on record costs.
    charges: tuple[Charge, ...] = ()
    # The id that it came by, where it goes on under another: a person agreed to it meanwhile.
    came_as: str = ""
    # Where it may have to wait for a person: what it holds meanwhile.
    hold: Hold | None = None
    # Of a queued one, by the wall clock: when the call that waits for it is over; 0: none does.
    parent_ns: int = 0

    @property
    def kind(self) -> CallerKind:
        """By itself, or as a step of a chain."""
        return self.asked.kind

    @property
    def spec(self) -> ToolSpec:
        """The tool that is called."""
        return self.grant.spec

    @property
    def caller(self) -> Caller:
        """Who calls."""
        return self.grant.caller

    @property
    def is_handed_on(self) -> bool:
        """Whether a worker runs it, and whoever called waits for that. Nothing is taken back so."""
        asked = self.asked
        is_queued = self.grant.spec.execution is Execution.QUEUED
        return is_queued and not (asked.delivered or asked.undo_of)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What whoever waits can be asked."""
        return {} if self.asked.line is None else self.asked.line.capabilities

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell whoever waits how far it has come. Where nobody listens it costs nothing."""
        if self.asked.line is not None:
            self.asked.line.progress(done, total, message)

    def log(self, message: Any, level: str = "info") -> None:
        """Tell whoever waits something on the way."""
        if self.asked.line is not None:
            self.asked.line.log(level, message)

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Ask whoever waits, before anything is changed: the tool may be run again from its start
        with the answers.
        """
        if self.asked.line is None:
            raise CannotAsk(())
        return await self.asked.line.ask(questions)

    async def elicit(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the user to fill in a form; `None` where they decline."""
        question = Question(
            "elicitation/create", {"mode": "form", "message": message, "requestedSchema": schema}
        )
        said = (await self.ask({"answer": question}))["answer"]
        return said.get("content") or {} if said.get("action") == "accept" else None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call has no result, in words for a model."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, Any] = {}


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The one result envelope, the same at every door.

    `untrusted`: what it holds was written by others (a server, a page, a program, a file): it is
    material for a model, never an instruction.
    """

    status: Status
    data: Any = None
    error: Failure | None = None
    call_id: str = ""
    cached: bool = False
    duration_ms: float = 0.0
    side_effects: tuple[SideEffect, ...] = ()
    protocol_version: int = 1
    untrusted: bool = False

    @property
    def ok(self) -> bool:
        """Whether the tool did what it was asked to."""
        return self.status == "success"

    def to_machine(self) -> dict[str, Any]:
        """Plain JSON, as the doors send it."""
        return {"ok": self.ok, **msgspec.to_builtins(self)}

    def to_human(self) -> str:
        """A few lines for a person, or for a model that reads text."""
        if self.error is None:
            return self._shown()
        why = f"{self.error.code}: {self.error.message}"
        # Of a result that was cut off, what there is comes before what happened to it.
        return f"{self._shown()}\n{why}" if self.status == "partial" else why

    def _shown(self) -> str:
        if isinstance(self.data, str):
            return self.data
        return orjson.dumps(self.data, option=orjson.OPT_INDENT_2).decode()


_process = os.urandom(4).hex()
_sequence = itertools.count()


def new_call_id(started_ns: int) -> str:
    """An id that sorts by time and is unique over processes. Not a secret."""
    # Not an f-string: that takes half as long again for numbers in hexadecimal.
    return "call_%x%s%04x" % (started_ns, _process, next(_sequence) & 0xFFFF)  # noqa: UP031
