"""A turn is taken back: in reverse order, once each, and what stays is said."""

import asyncio

from toolgate import Caller, Toolgate, Turn, tool

seats: dict[str, str] = {}


@tool(
    effect="compensatable",
    compensation={"tool": "cancel", "args": {"booking": "$result.booking"}, "window": 3600},
)
async def book(seat: str) -> dict[str, str]:
    """Book a seat."""
    seats[seat] = "booked"
    return {"booking": f"b-{seat}"}


@tool(effect="idempotent")
async def cancel(booking: str) -> str:
    """Cancel a booking."""
    seats.pop(booking.removeprefix("b-"), None)
    return f"{booking} is cancelled"


@tool(effect="irreversible")
async def send_mail(to: str) -> str:
    """Tell the customer."""
    return f"sent to {to}"


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(book, cancel, send_mail)
        me, turn = Caller(tenant="acme", agent="travel"), Turn(group="t-17")
        for seat in ("12A", "12B"):
            await gate.call("book", {"seat": seat}, caller=me, turn=turn)
        await gate.call("send_mail", {"to": "ann"}, caller=me, turn=turn)
        print("booked:", sorted(seats))

        report = await gate.undo(turn_group="t-17", caller=me, reason="the customer changed plans")
        for item in report.items:
            print(f"{item.tool:<10}{item.result:<8}{item.reason}".rstrip())
        print("booked:", sorted(seats), "| all taken back:", report.ok)

        again = await gate.undo(turn_group="t-17", caller=me)
        print("again: ", [item.result for item in again.items])


asyncio.run(main())
