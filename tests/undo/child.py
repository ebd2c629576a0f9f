"""A shop in a process of its own, whose effects are lines of a file: `python child.py ROOT URL`."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from toolgate import Caller, ToolError, Toolgate, Turn, tool
from toolgate.settings.execution import Toolbox
from toolgate.settings.settings import Settings, Store

ME = Caller(tenant="acme", agent="billing")
GROUP = "t-17"


def effects(root: Path) -> list[str]:
    file = root / "effects"
    return file.read_text("utf-8").split() if file.exists() else []


def settings(root: Path, url: str) -> Settings:
    store = Store(url=url) if url else Store()
    return Settings(root=root, store=store, toolbox=Toolbox(lease=1))


def tools(root: Path) -> list[Any]:
    def did(what: str) -> None:
        with (root / "effects").open("a", encoding="utf-8") as file:
            file.write(f"{what}\n")
            file.flush()
            os.fsync(file.fileno())

    both = ["direct", "chain"]

    @tool(
        effect="compensatable",
        allowed_callers=both,
        compensation={"tool": "refund", "args": {"id": "$result.id"}},
    )
    def pay(amount: int) -> dict[str, str]:
        did(f"pay:{amount}")
        return {"id": f"p{amount}"}

    @tool(
        effect="irreversible",
        probe={"tool": "refunded", "args": {"id": "$args.id"}, "happened": "yes"},
    )
    def refund(id: str) -> str:  # noqa: A002
        did(f"refund:{id}")
        return id

    @tool(effect="pure")
    def refunded(id: str) -> dict[str, bool]:  # noqa: A002
        return {"yes": f"refund:{id}" in effects(root)}

    @tool(effect="irreversible", allowed_callers=both)
    def fail() -> None:
        raise ToolError("The far side says no.")

    return [pay, refund, refunded, fail]


def trip() -> list[dict[str, Any]]:
    """Five steps, of which the fourth fails."""
    steps: list[dict[str, Any]] = [
        {"tool": "pay", "args": {"amount": amount}} for amount in (1, 2, 3, 5)
    ]
    return [*steps[:3], {"tool": "fail"}, steps[3]]


async def main(root: Path, url: str, *, chain: bool) -> None:
    async with Toolgate.open(settings(root, url)) as gate:
        gate.add(*tools(root))
        if chain:
            turn = Turn(group=GROUP)
            await gate.chain(trip(), caller=ME, turn=turn, mode="sequential", undo_on_failure=True)
            return
        for amount in (1, 2, 3):
            await gate.call("pay", {"amount": amount}, caller=ME, turn=Turn(group=GROUP))
        await gate.undo(caller=ME, turn_group=GROUP)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], chain="chain" in sys.argv[3:]))
