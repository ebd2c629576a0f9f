"""What flows through the house: frozen values, made at a door and handed inwards."""

import itertools
import os
from typing import Any, ClassVar, Literal

import msgspec
import orjson

from toolgate.errors import InvalidRequest
from toolgate.identity import plain
from toolgate.spec.effect import CallerKind, SideEffect
from toolgate.spec.tool import ToolSpec

Status = Literal[
    "success", "error", "pending_approval", "skipped", "superseded", "partial", "unknown"
]


def _texts(of: str, **fields: object) -> None:
    """A record can hold nothing else."""
    for name, value in fields.items():
        if type(value) is not str:
            raise InvalidRequest(f"{name!r} of a {of} is a text, not a {type(value).__name__}.")


class Caller(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Who calls. A door makes it from what it has verified; a tenant is never left out."""

    tenant: str
    agent: str = ""
    user: str = ""
    persona: str = ""
    roles: tuple[str, ...] = ()
    session: str = ""

    def __post_init__(self) -> None:
        """Only names that an operator can set a flag on: `Acme` must not slip past `acme`'s."""
        plain("tenant", self.tenant)
        if self.agent:
            plain("agent", self.agent)
        _texts("Caller", user=self.user, persona=self.persona, session=self.session)
        if type(self.roles) is not tuple or any(type(role) is not str for role in self.roles):
            raise InvalidRequest("The roles of a Caller are a tuple of texts: ('finance',).")


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One conversational attempt. Retries and superseding attempts share the group."""

    group: str
    id: str = ""

    def __post_init__(self) -> None:
        """A turn without a group would belong to every other one without."""
        _texts("Turn", group=self.group, id=self.id)
        if not self.group:
            raise InvalidRequest("A Turn needs a group: Turn(group='t-17').")


class Grant(msgspec.Struct, frozen=True):
    """The gate's yes: what was decided, on which catalog and world. Only `gate` builds one."""

    caller: Caller
    spec: ToolSpec
    catalog_revision: int
    tenancy_revision: int
    needs_a_person: bool


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
    kind: CallerKind = CallerKind.DIRECT

    @property
    def spec(self) -> ToolSpec:
        """The tool that is called."""
        return self.grant.spec

    @property
    def caller(self) -> Caller:
        """Who calls."""
        return self.grant.caller


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call has no result, in words for a model."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, Any] = {}


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The one result envelope, the same at every door."""

    status: Status
    data: Any = None
    error: Failure | None = None
    call_id: str = ""
    cached: bool = False
    duration_ms: float = 0.0
    side_effects: tuple[SideEffect, ...] = ()
    protocol_version: int = 1

    @property
    def ok(self) -> bool:
        """Whether the tool did what it was asked to."""
        return self.status == "success"

    def to_machine(self) -> dict[str, Any]:
        """Plain JSON, as the doors send it."""
        return {"ok": self.ok, **msgspec.to_builtins(self)}

    def to_human(self) -> str:
        """A few lines for a person, or for a model that reads text."""
        if self.error is not None:
            return f"{self.error.code}: {self.error.message}"
        if isinstance(self.data, str):
            return self.data
        return orjson.dumps(self.data, option=orjson.OPT_INDENT_2).decode()


_process = os.urandom(4).hex()
_sequence = itertools.count()


def new_call_id(started_ns: int) -> str:
    """An id that sorts by time and is unique over processes. Not a secret."""
    return f"call_{started_ns:x}{_process}{next(_sequence) & 0xFFFF:04x}"
