"""What became of taking back: one line for each effect, in the order they were tried."""

from typing import Any, Literal

import msgspec

Result = Literal[
    "undone",
    "already_undone",
    "failed",
    "cannot",
    "pending_approval",
    "in_progress",
    "refused",
    "expired",
]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One effect. `stands` says whether it may still be there."""

    call_id: str
    tool: str
    result: Result
    reason: str = ""
    # The call that took it back, or tried to, and the approval that this waits for.
    undo_call_id: str = ""
    approval_id: str = ""
    stands: bool = True


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All effects that were asked for: those that began last come first."""

    items: tuple[Item, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is left of them."""
        return not any(item.stands for item in self.items)

    def to_machine(self) -> dict[str, Any]:
        """Plain JSON, as the doors send it."""
        return {"ok": self.ok, **msgspec.to_builtins(self)}
