"""Calls as a planner writes them down: a tool, its arguments, and what the plan says of it."""

from typing import Any, Literal

import msgspec

from toolgate.asked import Asked, Planned
from toolgate.errors import InvalidRequest
from toolgate.executor.recording.claim import check_key

_MOST_TEXT = 256
_MOST_TOLD = 200


class PlannedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of a batch. `critical`: its failure ends the batch."""

    tool: str
    args: dict[str, Any] = {}
    idempotency_key: str | None = None
    when: Literal[
        "before_step", "during_step", "after_step", "BEFORE_STEP", "DURING_STEP", "AFTER_STEP"
    ] = "during_step"
    bound_rule_id: str | None = None
    bound_step_id: str | None = None
    critical: bool = True

    def asked(self) -> Asked:
        """How it is asked for, for the log."""
        planned = Planned(
            when=self.when.lower(),  # pyright: ignore[reportArgumentType]
            rule=self.bound_rule_id or "",
            step=self.bound_step_id or "",
            critical=self.critical,
        )
        return Asked(key=self.idempotency_key or "", planned=planned)


def read_planned(given: object, at: str) -> PlannedCall:
    """A planned call, or its fields; `InvalidRequest` that names the place."""
    if isinstance(given, dict) and "tool_name" in given:
        given = {("tool" if name == "tool_name" else name): of for name, of in given.items()}  # pyright: ignore[reportUnknownVariableType]
    try:
        call = given if isinstance(given, PlannedCall) else msgspec.convert(given, PlannedCall)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidRequest(
            f"{at} does not fit: {str(error)[:_MOST_TOLD]}. It has tool, args, idempotency_key, "
            "when, bound_rule_id, bound_step_id and critical. Nothing ran."
        ) from None
    if (
        not call.tool
        or max(len(call.bound_rule_id or ""), len(call.bound_step_id or "")) > _MOST_TEXT
    ):
        raise InvalidRequest(
            f"{at} needs the name of a tool, and ids of at most {_MOST_TEXT} characters. "
            "Nothing ran."
        )
    if call.idempotency_key is not None:
        check_key(call.idempotency_key)
    return call
