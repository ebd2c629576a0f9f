"""ToolSpec: what a tool is, as data. Never how it runs, and never a secret."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import cast

import msgspec

from toolgate.spec.cost import Cost
from toolgate.spec.document import Document, canonical, sha256
from toolgate.spec.effect import (
    BRINGS_WORDS,
    REACHES_WORDS,
    CallerKind,
    Effect,
    Execution,
    Permission,
    SideEffect,
)
from toolgate.spec.schema import Schema

ANYTHING = Document(b"{}")
NO_ARGUMENTS = Schema(b'{"type":"object","properties":{},"additionalProperties":false}')
# Fields that came after the first version, as they are where nobody sets them.
_LATER: Mapping[str, object] = {
    "execution": Execution.INLINE,
    "order_by": "",
    "queue_expires": None,
}
# Tools of these run by a worker, unless they say otherwise: their calls outlast a broker that is
# away.
_QUEUED = frozenset({"queue"})
# Kinds whose code the operator chose; any other speaks for somebody else.
_CHOSEN = frozenset({"builtin", "plugin", "python"})
# Built-in tools that touch nothing outside, and tell again what was kept of others' words.
_KEPT = frozenset({"canvas_read", "document_query", "memory_load", "read_inbox", "read_output"})
_NAMES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Origin(msgspec.Struct, frozen=True):
    """Where a spec came from: the kind of source, and which one."""

    kind: str
    where: str

    def __str__(self) -> str:
        return f"{self.kind} {self.where}" if self.where else self.kind


NOWHERE = Origin("python", "")
# Where the specs come from that toolgate itself brings.
BUILT_IN = "default catalog"


class Compensation(msgspec.Struct, frozen=True, kw_only=True):
    """The tool that takes this one back, and its arguments as data.

    A text that starts with `$args.` or `$result.` is replaced by that part of the call. `window`:
    how many seconds it can be taken back.
    """

    tool: str
    args: Document = ANYTHING
    window: float | None = None


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A pure tool that can tell whether a call happened, for one whose end nobody saw.

    `args` may hold `$args.NAME` and `$key`; `happened` says where in its result the answer is, true
    or false, and `result` where the call's own result is, if it tells that.
    """

    tool: str
    args: Document = ANYTHING
    happened: str = "happened"
    result: str = ""


class DownstreamKey(msgspec.Struct, frozen=True, kw_only=True):
    """How the far side is told which call this is, so that it does it once: in an argument, or,
    where the provider speaks HTTP, in a header.
    """

    argument: str = ""
    header: str = ""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how patiently a repeatable tool is tried."""

    attempts: int
    base_delay: float = 0.2
    max_delay: float = 10.0


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool's result can be read by, and what it is."""

    uri: str
    media_type: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments that stand in the URI."""
        return tuple(_NAMES.findall(self.uri))


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """So many calls in so many seconds."""

    calls: int
    per: float


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One tool. Built by a reader that has checked every field; see `spec.fields`."""

    name: str
    description: str = ""
    display_name: str = ""
    version: str = "1"
    category: str = ""
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    input_schema: Schema = NO_ARGUMENTS
    output_schema: Schema | None = None
    provider: str = "python"
    config: Document = ANYTHING
    enabled: bool = True
    permissions: tuple[Permission, ...] = ()
    side_effects: tuple[SideEffect, ...] = ()
    effect: Effect = Effect.IRREVERSIBLE
    destructive: bool = False
    compensation: Compensation | None = None
    requires_confirmation: bool = False
    confirmation_prompt: str = ""
    requires_approval: bool = False
    allowed_callers: tuple[CallerKind, ...] = (CallerKind.DIRECT,)
    idempotency_key: tuple[str, ...] = ()
    downstream_key: DownstreamKey | None = None
    probe: Probe | None = None
    timeout: float | None = None
    retry: Retry | None = None
    output_limit: int | None = None
    rate_limit: RateLimit | None = None
    # Beside one of `tool_calls`, which every call costs.
    costs: tuple[Cost, ...] = ()
    # Where a pure tool can be read as a resource: a URI, whose `{names}` are its arguments.
    resource: Resource | None = None
    execution: Execution = Execution.INLINE
    # Of a queued one: the argument whose value says which calls run one after the other.
    order_by: str = ""
    # Seconds that a call of it may wait for a worker, where that is less than the setting.
    queue_expires: float | None = None
    origin: Origin = NOWHERE

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical definition: what a pin or an approval is bound to.

        Where it was found and whether it is switched on do not change what the tool is. A field
        that older versions do not know counts where it is set: else all of them agree.
        """
        usual = {**_LATER, "execution": usual_execution(self.provider)}
        unset = tuple(name for name, value in usual.items() if getattr(self, name) == value)
        return sha256(canonical(definition(self, but=("enabled", "origin", *unset))))

    @cached_property
    def retells(self) -> bool:
        """Whether its results hold words that nobody here has written or agreed to.

        By what its definition says anyway: its kind, what it needs and what it touches.
        """
        if self.provider not in _CHOSEN:
            return True
        if REACHES_WORDS.intersection(self.permissions) or BRINGS_WORDS.intersection(
            self.side_effects
        ):
            return True
        return self.provider == "builtin" and self.config.value().get("builtin") in _KEPT

    @property
    def title(self) -> str:
        """What a person reads."""
        return self.display_name or self.name


def usual_execution(provider: str) -> Execution:
    """Where a call runs, of a tool that does not say."""
    return Execution.QUEUED if provider in _QUEUED else Execution.INLINE


def definition(spec: ToolSpec, *, but: tuple[str, ...] = ()) -> dict[str, object]:
    """The spec as plain JSON, in the words of the native layout; defaults included."""
    fields = (field for field in spec.__struct_fields__ if field not in but)
    return {field: _as_json(getattr(spec, field)) for field in fields}


def _as_json(value: object) -> object:
    if isinstance(value, Document):
        return value.value()
    if isinstance(value, msgspec.Struct):
        return {field: _as_json(getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_as_json(item) for item in cast("tuple[object, ...]", value)]
    return str(value) if isinstance(value, StrEnum) else value
