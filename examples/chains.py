"""A batch, and a chain whose failure is taken back."""

import asyncio

from toolgate import Caller, ToolError, Toolgate, Turn, tool


@tool(effect="pure")
async def find_room(city: str) -> dict[str, str]:
    """Find a free room."""
    return {"room": f"{city}-12"}


@tool(effect="idempotent")
async def release_room(room: str) -> None:
    """Give a room back."""
    print(f"  {room} is free again")


@tool(
    effect="compensatable",
    allowed_callers=["direct", "chain"],
    compensation={"tool": "release_room", "args": {"room": "$args.room"}},
)
async def book_room(room: str) -> str:
    """Book a room."""
    if room.startswith("Oslo"):
        raise ToolError("Oslo is full.")
    print(f"  {room} is booked")
    return room


TRIP = [
    {"tool": "find_room", "args": {"city": "Rome"}, "name": "rome"},
    {"tool": "find_room", "args": {"city": "Oslo"}, "name": "oslo"},
    {"tool": "book_room", "args": {"room": "$steps.rome.result.room"}},
    {"tool": "book_room", "args": {"room": "$steps.oslo.result.room"}},
]
CALLS = [
    {"tool": "find_room", "args": {"city": "Rome"}, "when": "before_step", "critical": False},
    {"tool": "book_room", "args": {"room": "Oslo-1"}, "bound_step_id": "book"},
    {"tool": "book_room", "args": {"room": "Rome-1"}},
]


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(find_room, release_room, book_room)
        box = gate.toolbox(Caller(tenant="acme", agent="travel"), Turn(group="t-1"))

        batch = await box.batch(CALLS)
        print([output.status for output in batch.outputs], "ended by call", batch.stopped_at)

        chain = await box.chain(TRIP, undo_on_failure=True)
        print(chain.mode_used, chain.waves)
        print([(step.tool, step.output.status) for step in chain.steps])


asyncio.run(main())
