"""The same house twice: opened in this process, and behind a real `toolgate serve`."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.house import open_gate
from tests.server.serving import Serving
from toolgate import Caller, Toolgate
from toolgate.client.remote import Remote
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.keys import Role

ME = Caller(tenant="acme", agent="billing")
MODULE = '''\
"""What the tools of both houses do."""

import asyncio
import pathlib

from toolgate import ToolError

BOOK = pathlib.Path(__file__).with_name("book.txt")


def write(text: str) -> dict[str, str]:
    with BOOK.open("a") as book:
        book.write(text + "\\\\n")
    return {"written": text}


def strike(text: str) -> str:
    with BOOK.open("a") as book:
        book.write("-" + text + "\\\\n")
    return text


async def wait_for_go(text: str) -> str:
    write(text)
    while not BOOK.with_name("go-" + text).exists():
        await asyncio.sleep(0.01)
    return text


def runs_out() -> None:
    raise ToolError("There are only three left.", left=3, retry_after=2.5)


def breaks() -> None:
    raise ValueError("a secret of the machine")


def odd() -> object:
    return object()


def count(number: int, step: float = 1.0) -> float:
    return number + step
'''.replace("\\\\", "\\")
TOOLS = """\
tools:
  - name: write_line
    description: Write a line into the book.
    allowed_callers: [direct, chain]
    category: books
    config: {module: house_tools, function: write}
    effect: compensatable
    side_effects: [modifies_files]
    compensation: {tool: strike_line, args: {text: "$args.text"}}
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
  - name: strike_line
    config: {module: house_tools, function: strike}
    effect: irreversible
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
  - name: careful
    config: {module: house_tools, function: write}
    effect: irreversible
    requires_approval: true
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
  - name: wait_for_go
    config: {module: house_tools, function: wait_for_go}
    effect: irreversible
    allowed_callers: [direct, chain]
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
  - {name: runs_out, config: {module: house_tools, function: runs_out}, effect: pure}
  - {name: breaks, config: {module: house_tools, function: breaks}, effect: irreversible}
  - {name: odd, config: {module: house_tools, function: odd}, effect: pure}
  - name: seldom
    config: {module: house_tools, function: count}
    effect: pure
    rate_limit: 1/day
    input_schema: {type: object, properties: {number: {type: integer}}}
  - name: "shop:books/count"
    config: {module: house_tools, function: count}
    effect: pure
    allowed_callers: [direct, chain]
    categories: [shop, books]
    input_schema:
      type: object
      properties: {number: {type: integer}, step: {type: number, default: 1.0}}
      required: [number]
  - {name: lacked, description: Not for billing., config: {module: house_tools, function: odd}}
  - {name: absent, config: {module: house_tools, function: odd}, enabled: false}
"""


class House(NamedTuple):
    """A gate, its caller, how a person agrees, and what its tools have done."""

    gate: Any
    me: Caller
    approve: Callable[[str], Awaitable[None]]
    book: Path

    def lines(self, of: str) -> list[str]:
        """What was written into the book that holds this text."""
        text = self.book.read_text("utf-8") if self.book.exists() else ""
        return [line for line in text.splitlines() if of in line]


class Keys(NamedTuple):
    agent: str
    admin: str
    approver: str
    narrow: str


def furnish(root: Path) -> None:
    """The files of a house."""
    (root / "tools").mkdir(parents=True)
    (root / "tools" / "house.yaml").write_text(TOOLS, "utf-8")
    (root / "house_tools.py").write_text(MODULE, "utf-8")


async def settle_in(gate: Toolgate) -> Keys:
    """Who there is."""
    tenancy = gate.tenancy
    await tenancy.set_agent("acme", "billing")
    await tenancy.set_agent("acme", "intern", Mode.LISTED)
    await tenancy.activate("acme", "billing", "lacked", enabled=False)
    await tenancy.set_tenant_tool("acme", "timestamp", enabled=False)
    made = (
        await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing"),
        await tenancy.add_key(Role.ADMIN, tenant="acme"),
        await tenancy.add_key(Role.APPROVER, tenant="acme"),
        await tenancy.add_key(
            Role.AGENT, tenant="acme", agent="billing", user="ann", roles=("finance",)
        ),
    )
    return Keys(*(fresh.secret for fresh in made))


async def prepared(root: Path) -> Keys:
    """A house that a server can open."""
    furnish(root)
    async with _opened(root) as gate:
        return await settle_in(gate)


class Served(NamedTuple):
    server: Serving
    keys: Keys

    @property
    def url(self) -> str:
        return self.server.greeting["url"]


@asynccontextmanager
async def here(root: Path) -> AsyncGenerator[House]:
    """In this process."""
    furnish(root)
    async with _opened(root) as gate:
        await settle_in(gate)

        async def approve(approval: str) -> None:
            await gate.approvals.approve(approval, by="ann")

        yield House(gate, ME, approve, root / "book.txt")


@asynccontextmanager
async def _opened(root: Path) -> AsyncGenerator[Toolgate]:
    try:
        async with open_gate(root) as gate:
            yield gate
    finally:
        # The next house has a module of the same name.
        sys.modules.pop("house_tools", None)
        sys.path.remove(str(root))


@asynccontextmanager
async def there(served: Served, key: str = "") -> AsyncGenerator[House]:
    """On a server."""

    async def approve(approval: str) -> None:
        path = f"/v1/approvals/{approval}/approve"
        answer = await asyncio.to_thread(
            served.server.ask, "POST", path, key=served.keys.approver, body={}
        )
        assert answer.status == 200, answer.text

    async with Toolgate.connect(served.url, key or served.keys.agent) as gate:
        assert type(gate) is Remote
        yield House(gate, ME, approve, served.server.root / "book.txt")
