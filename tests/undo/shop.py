"""A shop whose every effect is written down by itself, and calls whose owner is gone."""

# The rows of lost calls are made here, behind the ports.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from toolgate import Caller, ToolError, Turn, tool
from toolgate.call import Call
from toolgate.executor.aftercare.report import Report
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.runtime import Runtime
from toolgate.store.ledger import TableLedger
from toolgate.store.records import tool_execution_log as log
from toolgate.testing.journal import MemoryJournal

ME = Caller(tenant="acme", agent="billing")
OTHER = Caller(tenant="acme", agent="shipping")
FOREIGN = Caller(tenant="globex", agent="billing")
GROUP = Turn(group="t-17")


class Shop:
    """`effects` is the truth: what was done, in that order. `broken` names tools that fail."""

    def __init__(self) -> None:
        self.effects: list[tuple[str, Any]] = []
        self.broken: set[str] = set()
        self.found: object = True
        self.asked: list[str] = []
        self.keys: list[str] = []
        self.lose: Callable[[], None] = lambda: None

    def did(self, name: str, what: Any) -> None:
        if name in self.broken:
            raise ToolError(f"{name} is out of order")
        if f"{name}!" in self.broken:
            raise RuntimeError(name)
        self.effects.append((name, what))

    def tools(self) -> list[Callable[..., Any]]:
        """One of each kind."""

        @tool(
            effect="compensatable",
            compensation={"tool": "refund", "args": {"payment": "$result.payment"}},
            allowed_callers=["direct", "chain"],
        )
        def pay(amount: int) -> dict[str, str]:
            self.did("pay", amount)
            return {"payment": f"p{amount}"}

        @tool(effect="idempotent")
        def refund(payment: str) -> str:
            self.did("refund", payment)
            return payment

        @tool(
            effect="compensatable",
            compensation={"tool": "refund", "args": {"payment": "$args.id"}, "window": 0.001},
        )
        def rent(id: str) -> str:  # noqa: A002
            self.did("rent", id)
            return id

        @tool(
            effect="compensatable",
            compensation={"tool": "refund", "args": {"payment": "$result.lacks"}},
        )
        def lend(id: str) -> dict[str, str]:  # noqa: A002
            self.did("lend", id)
            return {"id": id}

        @tool(effect="idempotent")
        def label(text: str) -> str:
            self.did("label", text)
            return text

        @tool(effect="irreversible", allowed_callers=["direct", "chain"])
        def mail(to: str) -> str:
            self.did("mail", to)
            return to

        @tool(effect="irreversible", downstream_key={"header": "Idempotency-Key"})
        def charge(amount: int, call: Call) -> str:
            self.keys.append(call.downstream_key)
            self.did("charge", amount)
            return call.downstream_key

        @tool(
            effect="compensatable",
            compensation={"tool": "refund", "args": {"payment": "$result.payment"}},
            probe={
                "tool": "find",
                "args": {"key": "$key", "amount": "$args.amount"},
                "happened": "found.here",
                "result": "found.wire",
            },
        )
        def wire(amount: int, call: Call) -> dict[str, str]:
            self.keys.append(call.downstream_key)
            self.did("wire", amount)
            return {"payment": f"w{amount}"}

        @tool(effect="pure")
        def find(key: str, amount: int) -> dict[str, Any]:
            self.asked.append(key)
            if "find" in self.broken:
                raise ToolError("out of order")
            return {"found": {"here": self.found, "wire": {"payment": f"w{amount}"}}}

        @tool(effect="pure")
        def look(text: str) -> str:
            return text

        return [pay, refund, rent, lend, label, mail, charge, wire, find, look]


async def lost(house: Runtime, call_id: str, caller: Caller = ME, **changed: Any) -> Entry:
    """As if its process had been killed once the effect was done: only the intent is there."""
    values: dict[str, Any] = {
        "state": State.STARTED,
        "lease_ns": 1,
        "result": b"",
        "plan": b"",
        "owner": "gone",
        "ended_ns": 0,
    } | changed
    journal = house.journal
    entry = await house.ledger.find(caller.tenant, call_id)
    assert entry is not None
    entry = msgspec.structs.replace(entry, **values)
    if isinstance(journal, MemoryJournal):
        journal.put(entry)
        return entry
    ledger = house.ledger
    assert isinstance(ledger, TableLedger)
    row = {
        name: (value.decode() or None) if isinstance(value, bytes) else value
        for name, value in values.items()
    }

    def work(connection: sa.Connection) -> None:
        connection.execute(log.update().where(log.c.call_id == call_id).values(row))

    await ledger._database.write(work)
    return entry


async def without_key(house: Runtime, call_id: str) -> None:
    """As if its key had been given to another call since."""
    journal, ledger = house.journal, house.ledger
    if isinstance(journal, MemoryJournal):
        entry = await entry_of(house, call_id)
        del journal.keys[entry.tenant, entry.scope, entry.key]
        journal.put(msgspec.structs.replace(entry, key=""))
        return
    assert isinstance(ledger, TableLedger)

    def work(connection: sa.Connection) -> None:
        connection.execute(log.update().where(log.c.call_id == call_id).values(once_key=None))

    await ledger._database.write(work)


async def entry_of(house: Runtime, call_id: str, caller: Caller = ME) -> Entry:
    entry = await house.ledger.find(caller.tenant, call_id)
    assert entry is not None
    return entry


async def state_of(house: Runtime, call_id: str, caller: Caller = ME) -> str:
    return str((await entry_of(house, call_id, caller)).state)


async def paid(house: Runtime, *amounts: int, caller: Caller = ME) -> list[str]:
    """The ids of so many payments in one turn group."""
    made = [
        await house.call("pay", {"amount": amount}, caller=caller, turn=GROUP) for amount in amounts
    ]
    assert all(output.ok for output in made)
    return [output.call_id for output in made]


def results(report: Report) -> list[tuple[str, str]]:
    return [(item.tool, item.result) for item in report.items]
