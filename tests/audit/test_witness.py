"""What is done to calls and approvals behind the audit's back is seen."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy import Connection

from tests.audit.conftest import entry
from tests.audit.test_chain import tamper, verified
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, POSTGRES
from tests.thorough import some
from toolgate import Caller, ToolError, Toolgate, Turn, tool
from toolgate.errors import ApprovalDenied, InvalidRequest
from toolgate.ledger.state import State
from toolgate.settings.execution import Toolbox
from toolgate.settings.settings import Settings, Store
from toolgate.spec.effect import Effect
from toolgate.storage import connect
from toolgate.store import audit
from toolgate.store.approvals import TableApprovals
from toolgate.store.database import Database
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import COLUMNS, row_of
from toolgate.store.trail import TableTrail
from toolgate.tenancy.audit import Proof

pytestmark = pytest.mark.req("O2")
MANY = some(5_000, 20_000)
ME = Caller(tenant="acme", agent="billing", user="ann")
TURN = Turn(group="t1")


@tool(effect="compensatable", compensation={"tool": "refund", "args": {"id": "$args.id"}})
def book(id: str) -> str:  # noqa: A002
    """Book it."""
    return id


@tool(effect="idempotent")
def refund(id: str) -> str:  # noqa: A002
    """Give it back."""
    if id == "bad":
        raise ToolError("no")
    return id


@tool(effect="irreversible")
def mail(to: str) -> str:
    """Write to somebody: also to 'é\\0'."""
    if to == "nobody":
        raise ToolError("no such person")
    if to in {"lost", "lost too"}:
        raise RuntimeError(to)
    return to


@tool(effect="irreversible", requires_approval=True)
def pay(to: str) -> str:
    """Pay somebody."""
    return to


async def live(gate: Toolgate) -> None:
    """Calls and approvals of every kind of end."""
    gate.add(book, refund, mail, pay)
    for to in ("bob", "nobody", "é\0", "lost", "lost too"):
        await gate.call("mail", {"to": to}, caller=ME, turn=TURN)
    unknown = [one for one in await gate.journal.entries("acme") if one.state == "unknown"]
    await gate.settling.settle("acme", unknown[0].call_id, happened=True, who="eva", why="seen")
    await gate.settling.again("acme", unknown[1].call_id, who="eva", why="please")
    done = await gate.call("book", {"id": "a"}, caller=ME)
    failing = await gate.call("book", {"id": "bad"}, caller=ME)
    assert (await gate.undo(caller=ME, call_id=done.call_id)).ok
    assert not (await gate.undo(caller=ME, call_id=failing.call_id)).ok
    for name in ("used", "denied", "approved", "waiting"):
        first = await gate.call("pay", {"to": name}, caller=ME, turn=TURN)
        assert first.error is not None
        id_ = first.error.details["approval_id"]
        if name == "denied":
            await gate.approvals.deny(id_, by="boss", reason="no é")
            with pytest.raises(ApprovalDenied):
                await gate.call("pay", {"to": name}, caller=ME, turn=TURN)
        elif name != "waiting":
            await gate.approvals.approve(id_, by="boss", reason="fine")
        if name == "used":
            assert (await gate.call("pay", {"to": name}, caller=ME, turn=TURN)).ok


@pytest.fixture(params=(FILE, POSTGRES))
async def lived(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Database]:
    async with AsyncExitStack() as stack:
        store = Store()
        if request.param == POSTGRES:
            server: Server = request.getfixturevalue("postgres")
            store = Store(url=await stack.enter_async_context(lent_url(server)))
        settings = Settings(root=tmp_path, store=store, toolbox=Toolbox(lease=60))
        async with Toolgate.open(settings) as gate:
            await live(gate)
        database = connect(settings)
        stack.push_async_callback(database.close)
        yield database


async def test_what_really_happened_holds_while_it_goes_on_happening(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, toolbox=Toolbox(lease=60))
    async with Toolgate.open(settings) as gate:
        await live(gate)
        database = connect(settings)
        try:
            trail = TableTrail(database)
            proofs: list[Proof] = []
            for number in range(5):
                calls = [
                    gate.call("mail", {"to": f"{number}.{one}"}, caller=ME) for one in range(20)
                ]
                going_on = asyncio.gather(*calls)
                proofs.append(await trail.verify())
                await going_on
            assert [proven.problems for proven in proofs] == [()] * 5
        finally:
            await database.close()


async def test_what_a_probe_says_later_holds_too(tmp_path: Path) -> None:
    found: list[bool | None] = [None]

    @tool(effect="pure")
    def find(key: str) -> dict[str, object]:
        """Say whether it is there."""
        return {"here": found[0], "wire": {"key": key}}

    @tool(
        effect="compensatable",
        compensation={"tool": "refund", "args": {"id": "$result.key"}},
        probe={"tool": "find", "args": {"key": "$key"}, "happened": "here", "result": "wire"},
    )
    def wire(word: str) -> dict[str, str]:
        """Send it, and nobody hears how that ended."""
        raise RuntimeError(word)

    settings = Settings(root=tmp_path, toolbox=Toolbox(lease=60))
    async with Toolgate.open(settings) as gate:
        gate.add(find, wire, refund)
        lost = [await gate.call("wire", {"word": word}, caller=ME) for word in ("a", "b")]
        for output, happened in zip(lost, (True, False), strict=True):
            found[0] = happened
            report = await gate.undo(caller=ME, call_id=output.call_id)
            assert report.items[0].result == ("undone" if happened else "cannot")
    database = connect(settings)
    try:
        assert (await verified(database)).problems == ()
    finally:
        await database.close()


async def test_what_expired_holds_too(lived: Database) -> None:
    await tamper(
        lived,
        "UPDATE approvals SET expires_ns = 1 WHERE state IN ('waiting', 'approved')",
    )
    assert await TableApprovals(lived).sweep() == 2
    assert (await verified(lived)).problems == ()


ATTACKS = {
    "a state": "UPDATE tool_execution_log SET state = 'failed' WHERE state = 'succeeded'",
    "a state back": "UPDATE tool_execution_log SET state = 'started' WHERE state = 'unknown'",
    "an undo": "UPDATE tool_execution_log SET state = 'succeeded' WHERE state = 'compensated'",
    "a result": "UPDATE tool_execution_log SET result = '{}' WHERE state = 'succeeded'",
    "a result gone": "UPDATE tool_execution_log SET result = NULL WHERE state = 'succeeded'",
    "a plan": (
        "UPDATE tool_execution_log SET plan = replace(plan, '\"a\"', '\"z\"') "
        "WHERE plan LIKE '%\"a\"%'"
    ),
    "a plan gone": "UPDATE tool_execution_log SET plan = NULL WHERE plan IS NOT NULL",
    "arguments as they are kept": (
        "UPDATE tool_execution_log SET args = '{\"to\":\"eve\"}' WHERE tool_name = 'mail'"
    ),
    "roles": (
        "UPDATE tool_execution_log SET task = '{\"roles\":[\"root\"]}' WHERE tool_name = 'book'"
    ),
    "what it takes back": "UPDATE tool_execution_log SET undo_of = 'x' WHERE undo_of <> ''",
    "a turn group": "UPDATE tool_execution_log SET turn_group = 'x' WHERE turn_group = 't1'",
    "a caller": "UPDATE tool_execution_log SET agent_id = 'other' WHERE tool_name = 'book'",
    "a tool": "UPDATE tool_execution_log SET tool_name = 'echo' WHERE tool_name = 'book'",
    "arguments": "UPDATE tool_execution_log SET args_hash = 'x' WHERE tool_name = 'book'",
    "a tenant": "UPDATE tool_execution_log SET tenant_id = 'globex' WHERE tool_name = 'book'",
    "a row gone": "DELETE FROM tool_execution_log WHERE tool_name = 'book'",
    "every row gone": "DELETE FROM tool_execution_log",
    "what waited": "UPDATE tool_execution_log SET state = 'succeeded' WHERE state = 'waiting'",
    "what was denied": (
        "UPDATE tool_execution_log SET state = 'succeeded' WHERE error_code = 'approval_denied'"
    ),
    "who decided": "UPDATE approvals SET decided_by = 'mallory' WHERE state = 'used'",
    "why": "UPDATE approvals SET reason = 'other' WHERE state = 'used'",
    "a denial": "UPDATE approvals SET state = 'approved' WHERE state = 'denied'",
    "a wait": "UPDATE approvals SET state = 'approved' WHERE state = 'waiting'",
    "used again": "UPDATE approvals SET state = 'waiting' WHERE state = 'used'",
    "what was agreed to": "UPDATE approvals SET hash = 'x' WHERE state = 'used'",
    "what was shown": "UPDATE approvals SET args = '{}' WHERE state = 'used'",
    "in which words": "UPDATE approvals SET prompt = 'fine?' WHERE state = 'used'",
    "what it is used for": "UPDATE tool_execution_log SET digest = 'x' WHERE tool_name = 'book'",
    "whose key it is": "UPDATE tool_execution_log SET once_scope = 'x' WHERE tool_name = 'book'",
    "an approval gone": "DELETE FROM approvals WHERE state = 'used'",
    "an approval put there": "UPDATE approvals SET id = 'x' WHERE state = 'used'",
}


@pytest.mark.parametrize("what", ATTACKS)
async def test_what_is_done_to_a_call_or_an_approval_is_seen(lived: Database, what: str) -> None:
    assert (await verified(lived)).problems == (), "untouched, it holds"
    await tamper(lived, ATTACKS[what])
    found = await verified(lived)
    assert not found.holds, what
    assert all(problem.startswith(("call ", "approval ")) for problem in found.problems)


async def test_an_audit_that_was_emptied_is_seen(lived: Database) -> None:
    await tamper(lived, "DELETE FROM audit_log", "DELETE FROM audit_seals")
    found = await verified(lived)
    assert (found.records, found.seals, found.holds) == (0, 0, False)
    assert any("the audit never said so" in problem for problem in found.problems)


@pytest.mark.parametrize("fence", [0, 1])
async def test_a_row_that_the_audit_never_heard_of_is_seen_however_old_it_looks(
    lived: Database, fence: int
) -> None:
    new = dict(zip(COLUMNS, row_of(entry("call_new", effect=Effect.IRREVERSIBLE)), strict=True))
    await lived.write(lambda one: one.execute(log.insert(), new | {"fence": fence}))
    [problem] = (await verified(lived)).problems
    assert "the audit never said so" in problem


@pytest.mark.parametrize("plan", [b'{"tool":"refund","args":{"sum":1}}', b'{"tool":"refund"}'])
async def test_a_later_record_does_not_make_good_what_was_changed_before_it(
    opened: Database, plan: bytes
) -> None:
    done = replace(entry("call_1", effect=Effect.COMPENSATABLE), plan=b'{"tool":"refund"}')
    found = replace(done, plan=plan, state=State.COMPENSATED)

    def work(connection: Connection) -> None:
        connection.execute(log.insert(), dict(zip(COLUMNS, row_of(found), strict=True)))
        undoing = replace(found, state=State.COMPENSATING)
        told = [(done, "call.ended"), (undoing, "call.undo"), (found, "call.ended")]
        audit.put(connection, [audit.execution_row(one, 1, change=as_) for one, as_ in told])

    await opened.write(work)
    problems = (await verified(opened)).problems
    assert bool(problems) == (plan != done.plan)
    assert all("between two records" in problem for problem in problems)


async def test_a_proof_about_nobody_is_refused(lived: Database) -> None:
    assert (await verified(lived, tenant="acme")).holds
    with pytest.raises(InvalidRequest, match="no tenant 'acmee'"):
        await verified(lived, tenant="acmee")


async def test_twenty_thousand_calls_would_be_proven_in_a_few_seconds(opened: Database) -> None:
    done = [entry(f"call_{number:05}", effect=Effect.IRREVERSIBLE) for number in range(MANY)]

    def work(connection: Connection) -> None:
        rows = [dict(zip(COLUMNS, row_of(one), strict=True)) for one in done]
        connection.execute(sa.insert(log), rows)
        audit.put(connection, [audit.execution_row(one, 1) for one in done])

    await opened.write(work)
    trail = TableTrail(opened)
    await trail.anchors()
    began = time.process_time()
    found = await trail.verify()
    assert (found.holds, found.records) == (True, MANY)
    assert time.process_time() - began < 10 * MANY / 20_000
