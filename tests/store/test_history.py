"""What sessions did: one suite for the twin, SQLite and PostgreSQL."""

import itertools
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.store.kept import KINDS, kept
from toolgate import clock
from toolgate.call import Turn
from toolgate.caller import Caller
from toolgate.ledger.history import KEEP_NS, Past, Sessions, session_of, turn_of
from toolgate.ledger.state import State
from toolgate.store.database import Database
from toolgate.store.history import TableHistory
from toolgate.testing.history import MemoryHistory

pytestmark = pytest.mark.req("G3")
ME = Caller(tenant="acme", agent="clerk", session="s1")
NOTHING: dict[str, Any] = {"calls": 0, "tools": {}}
ENDS = [State.SUCCEEDED, State.FAILED, State.UNKNOWN]
_moments = itertools.count(clock.unix_ns())


def past(**fields: Any) -> Past:
    at = next(_moments)
    values: dict[str, Any] = {
        "call_id": f"call_{at}",
        "tenant": "acme",
        "session": "s1",
        "turn_group": "t1",
        "tool": "orders.find",
        "state": State.SUCCEEDED,
        "args": {"order": 7},
        "created_ns": at,
    }
    values |= fields
    whose = Caller(tenant=values["tenant"], agent="clerk", session=values["session"])
    group = values["turn_group"]
    values["session"] = session_of(whose)
    values["turn_group"] = turn_of(whose, Turn(group=group) if group else None)
    return Past(**values)


def of_tool(**fields: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = dict.fromkeys(("succeeded", "failed", "in_flight", "unknown"), 0)
    return {"calls": 1, **nothing, "args": {}, **fields}


@pytest.fixture(params=KINDS)
async def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Sessions]:
    async with kept(request, tmp_path, MemoryHistory, TableHistory) as made:
        yield made


async def test_a_session_in_which_nothing_happened_has_zeros(sessions: Sessions) -> None:
    turn = Turn(group="t1")
    assert await sessions.of(ME, turn) == {"session": NOTHING, "turn": NOTHING}


async def test_without_a_session_or_a_turn_nothing_belongs_to_it(sessions: Sessions) -> None:
    await sessions.begin(past(session="", turn_group=""))
    nobody = Caller(tenant="acme")
    assert await sessions.of(nobody, None) == {"session": NOTHING, "turn": NOTHING}
    await sessions.begin(past(turn_group=""))
    assert (await sessions.of(ME, None))["session"]["calls"] == 1
    assert (await sessions.of(nobody, Turn(group="t1")))["turn"] == NOTHING


async def test_a_session_and_a_turn_are_one_users_with_one_agent(sessions: Sessions) -> None:
    turn = Turn(group="t1")
    await sessions.begin(past())
    found = await sessions.of(ME, turn)
    assert (found["session"]["calls"], found["turn"]["calls"]) == (1, 1)
    strangers = (
        Caller(tenant="acme", agent="other", session="s1"),
        Caller(tenant="acme", agent="clerk", user="bob", session="s1"),
        Caller(tenant="acme", agent="clerk", user="0/s1", session="s1"),
        Caller(tenant="acme", session="clerk/0//s1"),
    )
    for stranger in strangers:
        assert await sessions.of(stranger, turn) == {"session": NOTHING, "turn": NOTHING}
    helper = ME.delegate("helper")
    found = await sessions.of(helper, turn)
    assert found["session"]["calls"] == 1, "who was handed the task works in the same session"


async def test_a_started_call_is_in_flight_until_it_ends(sessions: Sessions) -> None:
    call = past(state=State.STARTED)
    await sessions.begin(call)
    found = (await sessions.of(ME, None))["session"]
    assert found == {"calls": 1, "tools": {"orders.find": of_tool(in_flight=1)}}
    await sessions.end(call.call_id, State.SUCCEEDED)
    found = (await sessions.of(ME, None))["session"]
    over = of_tool(succeeded=1, args={"order": [7]})
    assert found == {"calls": 1, "tools": {"orders.find": over}}


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", list(State))
async def test_a_call_ends_only_once(sessions: Sessions, first: State, second: State) -> None:
    call = past(state=State.STARTED)
    await sessions.begin(call)
    await sessions.end(call.call_id, first)
    before = await sessions.of(ME, None)
    await sessions.end(call.call_id, second)
    await sessions.begin(past(call_id=call.call_id, state=second))
    assert await sessions.of(ME, None) == before


async def test_an_end_without_a_beginning_leaves_no_trace(sessions: Sessions) -> None:
    await sessions.end("call_none", State.SUCCEEDED)
    assert (await sessions.of(ME, None))["session"] == NOTHING


async def test_a_call_that_was_given_up_before_it_began_was_never_made(sessions: Sessions) -> None:
    given_up, done = past(state=State.STARTED), past(state=State.STARTED)
    for call in (given_up, done):
        await sessions.begin(call)
    await sessions.end(done.call_id, State.SUCCEEDED)
    for call in (given_up, done):
        await sessions.forget(call.call_id)
    over = of_tool(succeeded=1, args={"order": [7]})
    found = (await sessions.of(ME, None))["session"]
    assert found == {"calls": 1, "tools": {"orders.find": over}}, "what has ended stays"


async def test_each_tool_is_counted_by_how_its_calls_ended(sessions: Sessions) -> None:
    told = (State.STARTED, State.SUCCEEDED, State.FAILED, State.UNKNOWN)
    for state, number in zip(told, (1, 2, 3, 4), strict=True):
        for _ in range(number):
            await sessions.begin(past(state=state, args={}))
    await sessions.begin(past(tool="echo", args={}))
    assert (await sessions.of(ME, None))["session"] == {
        "calls": 11,
        "tools": {
            "orders.find": of_tool(calls=10, in_flight=1, succeeded=2, failed=3, unknown=4),
            "echo": of_tool(succeeded=1),
        },
    }


@pytest.mark.parametrize("state", [State.STARTED, State.FAILED, State.UNKNOWN])
async def test_only_what_succeeded_tells_its_arguments(sessions: Sessions, state: State) -> None:
    await sessions.begin(past(state=state, args={"order": 8}))
    assert (await sessions.of(ME, None))["session"]["tools"]["orders.find"]["args"] == {}
    await sessions.begin(past(args={"order": 9}))
    found = (await sessions.of(ME, None))["session"]["tools"]["orders.find"]["args"]
    assert found == {"order": [9]}


async def test_of_each_argument_the_last_distinct_values_are_told_oldest_first(
    sessions: Sessions,
) -> None:
    for number in (*range(25), 3, 3, 24):
        await sessions.begin(past(args={"order": number, "kind": "x"}))
    found = (await sessions.of(ME, None))["session"]["tools"]["orders.find"]["args"]
    assert found == {"order": [*range(6, 24), 3, 24], "kind": ["x"]}


async def test_a_busy_tool_does_not_push_out_anothers_arguments(sessions: Sessions) -> None:
    await sessions.begin(past(args={"order": 7}))
    for number in range(250):
        await sessions.begin(past(tool="echo", args={"text": str(number)}))
    tools = (await sessions.of(ME, None))["session"]["tools"]
    assert tools["orders.find"]["args"] == {"order": [7]}
    assert tools["echo"]["calls"] == 250
    assert tools["echo"]["args"]["text"] == [str(number) for number in range(230, 250)]


async def test_values_of_different_types_are_different_values(sessions: Sessions) -> None:
    values = [1, True, "1", 1.5, False, 0, "", "é\0🙂"]
    for value in values:
        await sessions.begin(past(args={"v": value}))
    found = (await sessions.of(ME, None))["session"]["tools"]["orders.find"]["args"]["v"]
    assert [(type(one), one) for one in found] == [(type(one), one) for one in values]


async def test_a_turn_is_seen_across_sessions_and_a_session_across_turns(
    sessions: Sessions,
) -> None:
    await sessions.begin(past(session="s1", turn_group="t1"))
    await sessions.begin(past(session="s2", turn_group="t1"))
    await sessions.begin(past(session="s1", turn_group="t2"))
    await sessions.begin(past(session="s1", turn_group=""))
    found = await sessions.of(ME, Turn(group="t1"))
    assert (found["session"]["calls"], found["turn"]["calls"]) == (3, 2)


@pytest.mark.req("V3")
async def test_the_same_session_and_turn_in_another_tenant_are_others(sessions: Sessions) -> None:
    await sessions.begin(past(tenant="globex"))
    found = await sessions.of(ME, Turn(group="t1"))
    assert found == {"session": NOTHING, "turn": NOTHING}
    theirs = await sessions.of(
        Caller(tenant="globex", agent="clerk", session="s1"), Turn(group="t1")
    )
    assert (theirs["session"]["calls"], theirs["turn"]["calls"]) == (1, 1)
    for session in ("S1", "s1 ", "s%", "_1", "s1\0"):
        other = Caller(tenant="globex", agent="clerk", session=session)
        assert (await sessions.of(other, None))["session"] == NOTHING


async def test_the_longest_names_of_any_sign_can_be_kept(sessions: Sessions) -> None:
    for name in ("x" * 512, "NUL \0, half a pair \udcff, é, 🙂"):
        await sessions.begin(past(session=name, turn_group=name))
        found = await sessions.of(
            Caller(tenant="acme", agent="clerk", session=name), Turn(group=name)
        )
        assert (found["session"]["calls"], found["turn"]["calls"]) == (1, 1)
    almost = Caller(tenant="acme", agent="clerk", session="x" * 511)
    assert (await sessions.of(almost, None))["session"] == NOTHING


async def test_after_a_day_it_is_forgotten(sessions: Sessions) -> None:
    now = clock.unix_ns()
    await sessions.begin(past(created_ns=now - KEEP_NS - 1, state=State.STARTED))
    await sessions.begin(past(created_ns=now - KEEP_NS + 3_600 * 1_000_000_000))
    assert (await sessions.of(ME, None))["session"]["calls"] == 1


async def test_what_is_a_day_old_is_deleted_in_the_course_of_things(database: Database) -> None:
    history = TableHistory(database)
    for number in range(3):
        await history.begin(past(call_id=f"old{number}", created_ns=clock.unix_ns() - 2 * KEEP_NS))
    await history.close()
    later = TableHistory(database)
    young = past()
    await later.begin(young)
    await later.close()
    left = await database.read(
        lambda connection: (
            connection.exec_driver_sql("SELECT call_id FROM session_calls").scalars().all()
        )
    )
    assert list(left) == [young.call_id]


async def test_two_nodes_see_one_history(database: Database) -> None:
    here, there = TableHistory(database), TableHistory(database)
    call = past(state=State.STARTED)
    await here.begin(call)
    assert (await there.of(ME, None))["session"]["tools"]["orders.find"]["in_flight"] == 1
    await here.end(call.call_id, State.UNKNOWN)
    assert (await there.of(ME, None))["session"]["tools"]["orders.find"]["unknown"] == 1
    await here.close()
