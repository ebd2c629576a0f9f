"""One suite for every place that approvals are kept: the twin in memory, SQLite and PostgreSQL."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.people.conftest import Kept
from tests.store.entries import entry
from toolgate.ledger import approval as rules
from toolgate.ledger.approval import Approval, Kind, Requested, Some, Standing, Word
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State

pytestmark = pytest.mark.req("S6", "D1")
HOUR = 3_600 * 10**9
ODD = "NUL \0, é, 🙂, ' \" -- \n\u2028"


def approval(call: Entry, **fields: Any) -> Approval:
    values: dict[str, Any] = {
        "id": f"apr_{call.call_id}",
        "tenant": call.tenant,
        "hash": "sha256:0a",
        "call_id": call.call_id,
        "kind": Kind.APPROVAL,
        "tool": call.tool,
        "fingerprint": call.fingerprint,
        "agent": call.agent,
        "user": call.user,
        "args": call.args,
        "prompt": "May it run?",
        "policy_revision": "r1",
    }
    return Approval(**(values | fields))


async def asked(kept: Kept, call: Entry | None = None, *, ttl_ns: int = HOUR) -> Requested:
    call = call or entry()
    return await kept.approvals.request(approval(call), call, ttl_ns)


async def begin(kept: Kept, found: Approval, **fields: Any) -> Action:
    call = entry(call_id=found.call_id, approval=found.id, **fields)
    return (await kept.journal.begin(call)).action


async def agree(kept: Kept, found: Approval) -> Approval | None:
    return await kept.approvals.decide(found, approved=True, who="boss", why="fine")


async def test_the_first_call_asks_and_the_next_finds_that_it_was_asked(kept: Kept) -> None:
    first, second = await asked(kept), await asked(kept)
    assert (first.word, first.is_new) == (Word.WAIT, True)
    assert (second.word, second.is_new) == (Word.WAIT, False)
    assert second.approval == first.approval


async def test_while_it_waits_its_call_is_on_record_as_waiting(kept: Kept) -> None:
    call = entry()
    await asked(kept, call)
    found = await kept.journal.find("acme", call.call_id)
    assert found is not None
    assert (found.state, found.approval) == (State.WAITING, f"apr_{call.call_id}")


async def test_many_who_ask_at_once_ask_once(kept: Kept) -> None:
    found = await asyncio.gather(*(asked(kept) for _ in range(8)))
    assert len({one.approval.id for one in found}) == 1
    assert [one.is_new for one in found].count(True) == 1


async def test_what_was_approved_is_there_for_the_call_that_asked(kept: Kept) -> None:
    found = (await asked(kept)).approval
    decided = await agree(kept, found)
    assert decided is not None
    assert (decided.state, decided.decided_by, decided.reason) == (
        Standing.APPROVED,
        "boss",
        "fine",
    )
    again = await asked(kept)
    assert (again.word, again.approval) == (Word.GO, decided)
    assert await begin(kept, decided) is Action.RUN
    used = await kept.approvals.find("acme", found.id)
    assert used is not None
    assert used.state is Standing.USED


async def test_an_approval_lets_one_call_begin_and_no_other(kept: Kept) -> None:
    found = (await asked(kept)).approval
    await agree(kept, found)
    begun = await asyncio.gather(*(begin(kept, found) for _ in range(4)), return_exceptions=True)
    assert begun.count(Action.RUN) == 1
    assert (await asked(kept)).is_new, "the next call is another question"


async def test_a_call_belongs_to_the_turn_that_runs_it(kept: Kept) -> None:
    found = (await asked(kept, entry(turn_group="t1", session="s1"))).approval
    await agree(kept, found)
    assert await begin(kept, found, turn_group="t2", turn_id="7", session="s2") is Action.RUN
    read = await kept.journal.find("acme", found.call_id)
    assert read is not None
    assert (read.turn_group, read.turn_id, read.session) == ("t2", "7", "s2")


async def test_what_nobody_approved_does_not_begin(kept: Kept) -> None:
    found = (await asked(kept)).approval
    assert await begin(kept, found) is Action.REFUSE
    await kept.approvals.decide(found, approved=False, who="boss", why="no")
    assert await begin(kept, found) is Action.REFUSE


async def test_another_tenants_approval_lets_nothing_begin(kept: Kept) -> None:
    found = (await asked(kept)).approval
    await agree(kept, found)
    foreign = entry(tenant="umbrella", approval=found.id)
    assert (await kept.journal.begin(foreign)).action is Action.REFUSE


async def test_of_those_who_decide_at_once_one_does(kept: Kept) -> None:
    found = (await asked(kept)).approval
    words = await asyncio.gather(
        *(
            kept.approvals.decide(found, approved=number % 2 == 0, who=f"p{number}", why="")
            for number in range(8)
        )
    )
    [decided] = [one for one in words if one is not None]
    assert await kept.approvals.find("acme", found.id) == decided


async def test_a_no_holds_until_it_expires(kept: Kept) -> None:
    call = entry()
    found = (await asked(kept, call)).approval
    await kept.approvals.decide(found, approved=False, who="boss", why="too much")
    again = await asked(kept)
    assert (again.word, again.approval.reason) == (Word.NO, "too much")
    closed = await kept.journal.find("acme", call.call_id)
    assert closed is not None
    assert (closed.state, closed.error_code) == (State.FAILED, "approval_denied")


async def test_what_is_over_expires_with_its_call(kept: Kept) -> None:
    call = entry()
    found = (await asked(kept, call, ttl_ns=0)).approval
    assert await agree(kept, found) is None
    assert await kept.approvals.sweep() == 1
    assert await kept.approvals.sweep() == 0
    swept = await kept.approvals.find("acme", found.id)
    assert swept is not None
    assert swept.state is Standing.EXPIRED
    waited = await kept.journal.find("acme", call.call_id)
    assert waited is not None
    assert waited.state is State.EXPIRED
    assert (await asked(kept)).is_new


async def test_an_approval_that_nobody_used_in_time_expires_too(kept: Kept) -> None:
    found = (await asked(kept, ttl_ns=HOUR // 7_200)).approval
    assert await agree(kept, found) is not None
    while not await kept.approvals.sweep():  # noqa: ASYNC110  the store's clock tells nobody
        await asyncio.sleep(0.02)
    assert await begin(kept, found) is Action.REFUSE
    expired = frozenset({Standing.EXPIRED})
    assert [one.id for one in await kept.approvals.search(Some(states=expired))] == [found.id]


async def test_what_is_over_and_not_swept_yet_is_asked_anew(kept: Kept) -> None:
    first = (await asked(kept, ttl_ns=0)).approval
    again = await asked(kept)
    assert again.is_new
    assert again.approval.id != first.id
    found = await kept.approvals.find("acme", first.id)
    assert found is not None
    assert found.state is Standing.EXPIRED


async def test_a_call_whose_key_is_on_record_asks_nobody(kept: Kept) -> None:
    done = entry(scope="s", key="k", digest="d")
    begun = await kept.journal.begin(done)
    over = msgspec.structs.replace(begun.entry, state=State.SUCCEEDED, result=b"{}")
    await kept.journal.end(over)
    again = await asked(kept, entry(scope="s", key="k", digest="d"))
    assert again.word is Word.ON_RECORD
    assert (await asked(kept, entry(scope="s", key="other", digest="d"))).is_new


async def test_a_key_whose_call_failed_for_the_moment_is_asked_about(kept: Kept) -> None:
    begun = await kept.journal.begin(entry(scope="s", key="k", digest="d"))
    await kept.journal.end(msgspec.structs.replace(begun.entry, state=State.FAILED))
    assert (await asked(kept, entry(scope="s", key="k", digest="d"))).is_new


async def test_a_key_is_taken_when_its_call_begins_and_not_while_it_waits(kept: Kept) -> None:
    first, second = (entry(scope="s", key="k", digest="d") for _ in range(2))
    found = (await asked(kept, first)).approval
    other = approval(second, hash="sha256:0b")
    assert (await kept.approvals.request(other, second, HOUR)).is_new
    await agree(kept, found)
    assert await begin(kept, found, scope="s", key="k", digest="d") is Action.RUN
    await agree(kept, other)
    assert await begin(kept, other, scope="s", key="k", digest="d") is Action.WAIT


async def test_how_far_one_got_is_told_by_a_look(kept: Kept) -> None:
    found = (await asked(kept)).approval
    assert await kept.approvals.stands("acme", found.id) is Standing.WAITING
    assert await kept.approvals.stands("umbrella", found.id) is None
    assert await kept.approvals.stands("acme", ODD) is None
    await agree(kept, found)
    assert await kept.approvals.stands("acme", found.id) is Standing.APPROVED
    over = entry()
    await kept.approvals.request(approval(over, hash="sha256:0c"), over, 0)
    assert await kept.approvals.stands("acme", f"apr_{over.call_id}") is Standing.EXPIRED


async def test_only_so_many_are_open_at_a_time(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_OF_REQUESTER", 2)
    monkeypatch.setattr(rules, "MOST_OF_TENANT", 3)
    numbers = iter(range(100))

    async def one(ttl_ns: int = HOUR, **fields: Any) -> Requested:
        call = entry(**fields)
        wanted = approval(call, hash=f"sha256:{next(numbers)}")
        return await kept.approvals.request(wanted, call, ttl_ns)

    await one(0)
    first = await one()
    assert [(await one()).word for _ in range(2)] == [Word.WAIT, Word.FULL]
    assert [(await one(user="bob")).word for _ in range(2)] == [Word.WAIT, Word.FULL]
    assert (await one(tenant="umbrella")).word is Word.WAIT
    await kept.approvals.decide(first.approval, approved=False, who="boss", why="")
    assert (await one()).word is Word.WAIT


async def test_they_are_found_by_tenant_agent_user_and_state(kept: Kept) -> None:
    for number, (tenant, agent, user) in enumerate(
        (("acme", "clerk", "ann"), ("acme", "clerk", "bob"), ("umbrella", "clerk", "ann"))
    ):
        call = entry(tenant=tenant, agent=agent, user=user)
        await kept.approvals.request(approval(call, hash=f"sha256:{number}"), call, HOUR)
    search = kept.approvals.search
    assert [one.user for one in await search(Some(tenant="acme"))] == ["bob", "ann"]
    assert [one.tenant for one in await search(Some(user="ann"))] == ["umbrella", "acme"]
    first, second = await search(Some(limit=2))
    [last] = await search(Some(limit=2, before=(second.created_ns, second.id)))
    assert [first.user, second.user, last.user] == ["ann", "bob", "ann"]
    assert await search(Some(before=(last.created_ns, last.id))) == []
    assert await search(Some(states=frozenset({Standing.DENIED}))) == []
    assert await search(Some(agent="nobody")) == []


async def test_another_tenants_name_finds_nothing(kept: Kept) -> None:
    found = (await asked(kept)).approval
    assert await kept.approvals.find("umbrella", found.id) is None
    assert await kept.approvals.find("", found.id) == found
    assert await kept.approvals.find("acme", "apr_none") is None


async def test_odd_text_can_be_kept_and_read_back(kept: Kept) -> None:
    call = entry()
    odd = approval(call, prompt=ODD, args='{"to":"é🙂"}'.encode())
    found = (await kept.approvals.request(odd, call, HOUR)).approval
    decided = await kept.approvals.decide(found, approved=True, who=ODD, why=ODD)
    assert decided is not None
    read = await kept.approvals.find("acme", found.id)
    assert read is not None
    assert read.args == odd.args
    assert "é, 🙂" in read.prompt
    assert "é, 🙂" in read.reason
