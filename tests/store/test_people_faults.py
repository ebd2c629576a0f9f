"""What fails at whichever statement of asking, deciding or drawing: all of it holds, or nothing."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from tests.store.faults import failing, gone, taken_back
from tests.store.kept import kept
from tests.store.once import Tables, keyed
from tests.store.places import FILE, POSTGRES
from tests.store.test_once_faults import no_twin
from toolgate.errors import StoreUnavailable
from toolgate.ledger.approval import Approval, Kind, Standing, Word
from toolgate.ledger.budget import Balance
from toolgate.ledger.entry import Entry
from toolgate.ledger.owner import Owner
from toolgate.ledger.state import State
from toolgate.store.approvals import TableApprovals
from toolgate.store.budgets import TableBudgets

pytestmark = pytest.mark.req("S3", "S6", "X9", "O2")
# More than any of them has.
MOST = 12
HOUR_NS = 3_600_000_000_000
Error = Callable[[], BaseException]


@pytest.fixture(params=[FILE, POSTGRES])
async def tables(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Tables]:
    async with kept(request, tmp_path, no_twin, Tables) as found:
        yield found


@pytest.fixture(params=[True, False], ids=["after", "before"])
def after(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(params=[gone, taken_back])
def error(request: pytest.FixtureRequest) -> Error:
    return request.param


def asked(number: int) -> tuple[Approval, Entry]:
    call = keyed(key=f"k{number}")
    wanted = Approval(
        id=f"a{number}",
        tenant=call.tenant,
        hash=f"h{number}",
        call_id=call.call_id,
        kind=Kind.APPROVAL,
        tool=call.tool,
        fingerprint=call.fingerprint,
        agent=call.agent,
        user=call.user,
        args=b"{}",
        prompt="",
        policy_revision="1",
    )
    return wanted, call


async def story(tables: Tables, call: Entry) -> tuple[State | None, int]:
    """How the call stands, and how much is told of its approval."""
    found = await tables.journal().find(call.tenant, call.call_id)
    told = [said for _, said in await tables.told() if said["call_id"] == call.call_id]
    return None if found is None else found.state, len(told)


async def test_a_question_is_asked_with_its_call_and_its_event_or_not_at_all(
    tables: Tables, error: Error, *, after: bool
) -> None:
    approvals = TableApprovals(tables.database, outbox=True)
    fell = 0
    for falls in range(MOST):
        wanted, call = asked(falls)
        with failing(falls, error, after=after), contextlib.suppress(StoreUnavailable):
            await approvals.request(wanted, call, HOUR_NS)
        stands = await approvals.stands(wanted.tenant, wanted.id)
        state, told = await story(tables, call)
        assert (stands, state, told) in {
            (None, None, 0),
            (Standing.WAITING, State.WAITING, 1),
        }, falls
        fell += stands is None
        again = await approvals.request(wanted, call, HOUR_NS)
        assert (again.word, again.approval.id) == (Word.WAIT, wanted.id)
        assert await story(tables, call) == (State.WAITING, 1), "and nobody is asked twice"
    assert 0 < fell < MOST or error is taken_back, "some fell, and the last had nothing to fall at"


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_what_a_person_decides_is_on_record_whole_or_not_at_all(
    tables: Tables, error: Error, *, after: bool, approved: bool
) -> None:
    approvals = TableApprovals(tables.database, outbox=True)
    last = Standing.APPROVED if approved else Standing.DENIED
    left = State.WAITING if approved else State.FAILED
    fell = 0
    for falls in range(MOST):
        wanted, call = asked(falls)
        waiting = (await approvals.request(wanted, call, HOUR_NS)).approval
        with failing(falls, error, after=after), contextlib.suppress(StoreUnavailable):
            await approvals.decide(waiting, approved=approved, who="boss", why="seen")
        stands = await approvals.stands(wanted.tenant, wanted.id)
        state, told = await story(tables, call)
        assert (stands, state, told) in {
            (Standing.WAITING, State.WAITING, 1),
            (last, left, 2),
        }, falls
        again = await approvals.decide(waiting, approved=approved, who="boss", why="seen")
        assert (again is None) is (stands is last), "one word counts"
        fell += again is not None
        assert await approvals.stands(wanted.tenant, wanted.id) is last
        assert await story(tables, call) == (left, 2)
    assert 0 < fell < MOST or error is taken_back, "some fell, and the last had nothing to fall at"


async def test_what_is_drawn_of_a_budget_is_granted_once(
    tables: Tables, error: Error, *, after: bool
) -> None:
    budgets = TableBudgets(tables.database, Owner(lease=60))
    fell = 0
    for falls in range(MOST):
        metric = f"m{falls}"
        balance = Balance(
            id=f"lease{falls}", tenant="acme", metric=metric, period="2026-11", left=0, behind=0
        )
        drawn = None
        with failing(falls, error, after=after), contextlib.suppress(StoreUnavailable):
            drawn = await budgets.draw(balance, [10], 10)
        held = (await budgets.usage("2026-11", "acme")).get(("acme", metric))
        # Nobody who was refused holds anything, whatever the store had done by then.
        assert (held.held if held else 0) == (0 if drawn is None else 10), falls
        fell += drawn is None
        if drawn is None:
            assert (await budgets.draw(balance, [10], 10)).granted == 10
        other = Balance(
            id=f"other{falls}", tenant="acme", metric=metric, period="2026-11", left=0, behind=0
        )
        assert (await budgets.draw(other, [10], 10)).granted == 0, "all of it is granted"
    assert 0 < fell < MOST or error is taken_back, "some fell, and the last had nothing to fall at"
