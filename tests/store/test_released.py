"""A queued call that was claimed and not begun is given back, over every store; it is done once."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.store.kept import KINDS
from tests.store.once import GONE, Once, Tables, keyed, opened, over
from tests.store.places import WALLED
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Journal
from toolgate.ledger.machine import Action, Recovery
from toolgate.ledger.state import State
from toolgate.spec.document import sha256
from toolgate.store import proof
from toolgate.tenancy.audit import ENDED

pytestmark = pytest.mark.req("S2", "S3", "P6")
RELEASED = "call.released released"
CHARGES = (("lease-1", 5),)


@pytest.fixture(params=dict.fromkeys((*KINDS, WALLED)))
async def once(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Once]:
    """As everywhere, and always for a role that row security is in force for as well."""
    async with opened(request, tmp_path) as found:
        yield found


def refused(begun: Entry) -> Entry:
    """As it is given back."""
    return over(begun, State.RELEASED, error_code="overloaded", error_message="Full.")


async def found(journal: Journal, call: Entry) -> Entry:
    entry = await journal.find("acme", call.call_id)
    assert entry is not None
    return entry


async def check(once: Once, *changes: str) -> None:
    """What the audit says, which holds."""
    if not isinstance(once, Tables):
        return
    assert await once.changes() == list(changes)
    proven = await once.database.read(lambda one: proof.verify(one, tenant="acme"), tenant="acme")
    assert proven.problems == ()


async def test_what_is_given_back_is_nobodys_and_runs_when_it_is_brought_again(once: Once) -> None:
    ours, theirs = once.journal(), once.journal()
    call = keyed(charges=CHARGES, args_hash=sha256(b'{"to":"bob"}'))
    begun = await ours.begin(call)
    assert (await ours.end(refused(begun.entry))).accepted
    left = await found(theirs, call)
    assert (left.state, left.lease_ns, left.expires_ns, left.tried) == (
        State.RELEASED,
        None,
        None,
        False,
    )
    assert (left.error_code, left.charges, left.ended_ns) == ("overloaded", (), 0)
    again = await theirs.begin(replace(call, charges=(("lease-2", 5),)))
    assert (again.action, again.entry.call_id, again.entry.fence) == (Action.RUN, call.call_id, 2)
    assert not again.entry.doubt
    on_record = await found(ours, call)
    assert (on_record.state, on_record.error_code) == (State.STARTED, "")
    assert on_record.charges == (("lease-2", 5),)
    assert (await theirs.end(over(again.entry, result=b'{"status":"success"}'))).accepted
    assert (await ours.begin(call)).action is Action.REPLAY
    await check(once, RELEASED, "call.taken started", f"{ENDED} succeeded")


async def test_who_gave_it_back_has_nothing_to_say_once_another_has_it(once: Once) -> None:
    ours, theirs = once.journal(), once.journal()
    call = keyed()
    begun = await ours.begin(call)
    await ours.end(refused(begun.entry))
    again = await theirs.begin(call)
    for state in (State.RELEASED, State.FAILED, State.UNKNOWN, State.SUCCEEDED):
        assert not (await ours.end(over(begun.entry, state))).accepted
    assert (await ours.begin(call)).action is Action.WAIT
    assert (await theirs.end(over(again.entry))).accepted


async def test_it_is_given_back_once_however_often_that_is_said(once: Once) -> None:
    journal, call = once.journal(), keyed()
    begun = await journal.begin(call)
    assert (await journal.end(refused(begun.entry))).accepted
    assert not (await journal.end(refused(begun.entry))).accepted
    assert (await journal.end(refused(begun.entry), again=True)).accepted
    assert not (await journal.end(over(begun.entry))).accepted, "it did not happen"
    await check(once, RELEASED)


async def test_other_arguments_under_its_key_are_still_a_conflict(once: Once) -> None:
    journal = once.journal()
    begun = await journal.begin(keyed())
    await journal.end(refused(begun.entry))
    assert (await journal.begin(keyed(digest="d2"))).action is Action.CONFLICT


async def test_a_twin_goes_on_with_it_under_its_id(once: Once) -> None:
    journal, first, twin = once.journal(), keyed(), keyed()
    await journal.end(refused((await journal.begin(first)).entry))
    begun = await journal.begin(twin)
    assert (begun.action, begun.entry.call_id) == (Action.RUN, first.call_id)
    await journal.end(over(begun.entry, result=b'{"status":"success"}'))
    assert (await journal.begin(first)).action is Action.REPLAY
    assert await journal.find("acme", twin.call_id) is None


async def test_brought_again_it_is_a_call_of_its_tool_as_that_is_now(once: Once) -> None:
    journal, call = once.journal(), keyed()
    await journal.end(refused((await journal.begin(call)).entry))
    newer = replace(call, digest="d2", fingerprint="sha256:01")
    begun = await journal.begin(newer)
    assert (begun.action, begun.entry.fingerprint) == (Action.RUN, "sha256:01")
    assert (await found(journal, call)).digest == "d2"


async def test_without_a_persons_word_it_is_not_begun_again_unless_it_had_one(once: Once) -> None:
    journal = once.journal()
    plain = keyed()
    await journal.end(refused((await journal.begin(plain)).entry))
    assert (await journal.begin(plain, may_start=False)).action is Action.ASK
    assert (await found(journal, plain)).state is State.RELEASED
    asked = keyed(key="", state=State.WAITING, approval="a1", expires_ns=1 << 62)
    await once.put(asked)
    await once.approve("a1", asked.call_id)
    call = keyed(key="k2", approval="a1")
    begun = await journal.begin(call)
    assert begun.action is Action.RUN
    await journal.end(refused(begun.entry))
    assert await once.approval("a1") == "used"
    again = await journal.begin(replace(call, approval=""), may_start=False)
    assert (again.action, again.entry.call_id) == (Action.RUN, asked.call_id)
    assert again.entry.approval == "a1"


@pytest.mark.parametrize("recovery", [Recovery.AGAIN, Recovery.KEYED])
async def test_what_another_may_have_begun_is_gone_on_with_as_such(
    once: Once, recovery: Recovery
) -> None:
    call = keyed(recovery=recovery, charges=CHARGES)
    await once.journal(**GONE).begin(call)
    journal = once.journal()
    for fence in (2, 3):
        begun = await journal.begin(call)
        assert (begun.action, begun.entry.fence) == (Action.AGAIN, fence)
        assert begun.entry.doubt
        assert (await journal.end(refused(begun.entry))).accepted
        left = await found(journal, call)
        assert (left.state, left.tried, left.charges) == (State.RELEASED, True, CHARGES)
    ended = await journal.give_up(replace(call, state=State.EXPIRED, error_code="out_of_time"))
    assert (ended.state, ended.error_code) == (State.UNKNOWN, "out_of_time")


@pytest.mark.parametrize("recovery", [Recovery.PARK, Recovery.PROBED])
async def test_what_may_have_happened_and_is_not_repeatable_is_not_given_back(
    once: Once, recovery: Recovery
) -> None:
    journal, call = once.journal(), keyed(recovery=recovery)
    begun = await journal.begin(call)
    assert not (await journal.end(replace(refused(begun.entry), doubt=True))).accepted
    assert (await found(journal, call)).state is State.STARTED


@pytest.mark.parametrize("state", [State.EXPIRED, State.FAILED])
async def test_what_nobody_brings_again_ends_and_its_key_is_free(once: Once, state: State) -> None:
    journal, call = once.journal(), keyed()
    await journal.end(refused((await journal.begin(call)).entry))
    told = replace(call, state=state, error_code="out_of_time", error_message="Too late.")
    for _ in range(2):
        ended = await journal.give_up(told)
        assert (ended.state, ended.error_code) == (state, "out_of_time")
    assert (await found(journal, call)).state is state
    await check(once, RELEASED, f"{ENDED} {state}")
    assert (await journal.begin(call)).action is Action.REPLAY, "an id is used once"
    assert (await journal.begin(keyed())).action is Action.RUN


async def test_what_never_came_to_a_claim_is_noted_and_what_has_begun_is_left_alone(
    once: Once,
) -> None:
    journal, never, begun = once.journal(), keyed(key="k2"), keyed()
    noted = await journal.give_up(replace(never, state=State.EXPIRED))
    assert noted.state is State.EXPIRED
    await journal.drain()
    assert (await found(journal, never)).state is State.EXPIRED
    await journal.begin(begun)
    assert (await journal.give_up(replace(begun, state=State.EXPIRED))).state is State.STARTED
    assert (await found(journal, begun)).state is State.STARTED


async def test_nobody_looks_after_it_as_after_a_lost_one(once: Once) -> None:
    journal, call = once.journal(**GONE), keyed(recovery=Recovery.AGAIN)
    begun = await journal.begin(call)
    ledger = once.ledger(once.journal())
    assert [one.call_id for one in await ledger.lost(10)] == [call.call_id]
    await journal.end(refused(begun.entry))
    assert list(await ledger.lost(10)) == []
    assert (await ledger.take(await found(journal, call))).action is Action.REFUSE
