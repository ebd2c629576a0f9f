"""Queued calls: the same rules in memory and over every store."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.queue.stand import FAR_NS, KINDS, LONG, OVER, Stand, ended, item, names, stood
from toolgate.errors import StoreError
from toolgate.queue.queue import Depth, Ended, Stage, Taken

pytestmark = pytest.mark.req("P6")


@pytest.fixture(params=KINDS)
async def stand(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stand]:
    """An empty queue."""
    async with stood(request, tmp_path) as found:
        yield found


async def taken(stand: Stand, name: str = "a", lease: float = LONG) -> Taken:
    """A call that was put and is held now."""
    await stand.queue.put(item(name))
    (found,) = await stand.queue.take(1, lease)
    return found


async def test_a_call_is_put_taken_and_ended(stand: Stand) -> None:
    queue = stand.queue
    await queue.put(item("a"))
    before = await queue.find("acme", "a")
    assert before is not None
    assert (before.stage, before.attempts, before.ended_ns) == (Stage.WAITING, 0, 0)
    assert (before.tool, before.agent, before.user) == ("pay", "billing", "ann")
    assert await queue.depth() == Depth(
        waiting=1, sent=0, taken=0, dead=0, oldest_ns=before.queued_ns, unheld_ns=before.queued_ns
    )
    (found,) = await queue.take(10, LONG)
    assert (found.message, found.fence, found.attempts, found.late) == (b"asked a", 1, 1, False)
    assert list(await queue.over(["a"])) == []
    assert await queue.waiting() == {"acme": 1}
    assert await queue.end(ended(found, b"done"))
    (after,) = await queue.over(["a", "unheard of"])
    assert (after.stage, after.output, after.why) == (Stage.DONE, b"done", "")
    assert after.ended_ns >= before.queued_ns
    assert await queue.waiting() == {}
    assert await queue.depth() == Depth(waiting=0, sent=0, taken=0, dead=0)


async def test_the_oldest_is_told_until_it_is_over_and_whether_a_worker_holds_it(
    stand: Stand,
) -> None:
    queue = stand.queue
    for name in ("a", "b"):
        await queue.put(item(name))
    first, second = [await queue.find("acme", name) for name in ("a", "b")]
    assert first is not None
    assert second is not None
    assert len(await stand.shipping.send(10, window=10, again=LONG)) == 2
    sent = await queue.depth()
    assert (sent.sent, sent.oldest_ns, sent.unheld_ns) == (2, first.queued_ns, first.queued_ns)
    (held,) = await queue.claim(["a"], LONG)
    taken = await queue.depth()
    assert (taken.oldest_ns, taken.unheld_ns) == (first.queued_ns, second.queued_ns)
    await queue.renew([held], -1.0)
    lost = await queue.depth()
    assert (lost.taken, lost.unheld_ns) == (1, first.queued_ns), "its worker was not heard of"
    assert [(one.lapsed, one.unheld) for one in (sent, taken, lost)] == [(0, 2), (0, 1), (1, 2)]
    assert await queue.end(ended(held))
    over = await queue.depth()
    assert (over.oldest_ns, over.unheld_ns) == (second.queued_ns, second.queued_ns)


@pytest.mark.req("G1")
async def test_a_call_is_found_by_its_own_tenant_only(stand: Stand) -> None:
    await stand.queue.put(item("a"))
    assert await stand.queue.find("globex", "a") is None
    assert await stand.queue.find("acme", "b") is None
    assert await stand.queue.find("acme", "a") is not None


async def test_what_was_never_put_changes_nothing(stand: Stand) -> None:
    queue, nobody = stand.queue, ["unheard of"]
    stranger = Taken(
        call_id="unheard of",
        tenant="acme",
        tool="pay",
        message=b"",
        fence=1,
        attempts=1,
        late=False,
    )
    assert not await queue.end(ended(stranger))
    await queue.back(stranger, OVER)
    await queue.renew([stranger], LONG)
    assert list(await queue.take_sent(10, LONG)) == []
    await stand.shipping.unsent(nobody)
    await stand.shipping.told(nobody)
    assert list(await queue.claim(nobody, LONG)) == []
    assert list(await queue.claim([], LONG)) == []
    assert list(await queue.take(10, LONG)) == []
    assert await queue.sweep() == 0
    assert set(await stand.shipping.known(nobody)) == set()
    assert not await stand.shipping.waits()
    assert not await stand.dead.again("acme", "unheard of", who="ann", why="")
    assert list(await stand.dead.page("")) == []


async def test_what_is_held_is_nobody_elses(stand: Stand) -> None:
    await taken(stand)
    for one in (stand.queue, *stand.others):
        assert list(await one.take(10, LONG)) == []
        assert list(await one.claim(["a"], LONG)) == []
        assert await one.sweep() == 0


async def test_whoever_lost_it_can_neither_end_it_nor_put_it_back(stand: Stand) -> None:
    queue = stand.queue
    first = await taken(stand, lease=OVER)
    (second,) = await queue.claim(["a"], LONG)
    assert (second.fence, second.attempts) == (first.fence + 1, 2)
    assert not await queue.end(ended(first, b"late"))
    await queue.back(first, OVER)
    assert list(await queue.take(10, LONG)) == []
    assert await queue.end(ended(second, b"done"))
    assert not await queue.end(ended(second, b"twice"))
    (found,) = await queue.over(["a"])
    assert found.output == b"done"


@pytest.mark.parametrize("late_first", [True, False])
async def test_ends_of_one_moment_are_told_apart_by_their_fences(
    stand: Stand, *, late_first: bool
) -> None:
    first = await taken(stand, lease=OVER)
    (second,) = await stand.queue.claim(["a"], LONG)
    ends = [ended(first, b"late"), ended(second, b"done")]
    if not late_first:
        ends.reverse()
    answers = await asyncio.gather(*(stand.queue.end(one) for one in ends))
    told = dict(zip((one.fence for one in ends), answers, strict=True))
    assert told == {first.fence: False, second.fence: True}
    (found,) = await stand.queue.over(["a"])
    assert found.output == b"done"


async def test_a_lease_that_ran_out_is_swept_and_a_renewed_one_is_not(stand: Stand) -> None:
    queue = stand.queue
    await queue.put(item("a"))
    await queue.put(item("b"))
    first, second = await queue.take(2, OVER)
    assert names([first, second]) == ["a", "b"]
    await queue.renew([second], LONG)
    assert await queue.sweep() == 1
    (found,) = await queue.take(10, LONG)
    assert (found.call_id, found.fence, found.attempts) == ("a", 2, 2)


async def test_who_has_lost_a_call_does_not_renew_it_for_who_has_it_now(stand: Stand) -> None:
    """It stood still past its lease: its successor died meanwhile, and must be missed in time."""
    queue = stand.queue
    await queue.put(item("a"))
    (first,) = await queue.take(1, OVER)
    assert await queue.sweep() == 1
    (second,) = await stand.others[0].take(1, OVER)
    await queue.renew([first], LONG)
    assert await queue.sweep() == 1
    (third,) = await queue.take(1, OVER)
    await queue.renew([first, second, third], LONG)
    assert await queue.sweep() == 0, "its own word counts"


async def test_what_is_put_back_waits_as_long_as_it_should(stand: Stand) -> None:
    queue = stand.queue
    await queue.back(await taken(stand), OVER)
    (found,) = await queue.take(10, LONG)
    assert (found.attempts, found.fence) == (2, 2)
    await queue.back(found, OVER, counts=False)
    (found,) = await queue.take(10, LONG)
    assert (found.attempts, found.fence) == (2, 3)
    await queue.back(found, LONG)
    assert list(await queue.take(10, LONG)) == []
    assert list(await queue.claim(["a"], LONG)) == []
    assert (await queue.depth()).waiting == 1


async def test_who_only_ends_a_call_has_not_tried_it(stand: Stand) -> None:
    for name, counts in (("a", False), ("b", True)):
        held = await taken(stand, name)
        assert await stand.queue.end(
            Ended(call_id=name, fence=held.fence, output=b"{}", why="lost", counts=counts)
        )
    found = await stand.dead.page("acme")
    assert [(one.call_id, one.attempts) for one in found] == [("b", 1), ("a", 0)]


async def test_a_call_is_late_once_its_time_is_over(stand: Stand) -> None:
    await stand.queue.put(item("late", expires_ns=1))
    await stand.queue.put(item("early", expires_ns=FAR_NS))
    found = await stand.queue.take(2, OVER)
    assert {one.call_id: one.late for one in found} == {"late": True, "early": False}
    assert [one.late for one in await stand.queue.claim(["late"], LONG)] == [True]


async def test_of_one_order_only_the_first_is_taken_and_others_pass_it(stand: Stand) -> None:
    queue = stand.queue
    for name in ("a1", "b1", "a2", "b2", "c", "d"):
        await queue.put(item(name, order=name[0] if name[-1].isdigit() else ""))
    first, *rest = await queue.take(10, LONG)
    assert names([first, *rest]) == ["a1", "b1", "c", "d"]
    assert list(await queue.claim(["a2", "b2"], LONG)) == []
    # Neither a pause nor a lost lease lets the next one pass.
    await queue.back(first, LONG)
    assert list(await queue.take(10, LONG)) == []
    assert await queue.end(ended(rest[0]))
    assert names(await queue.take(10, LONG)) == ["b2"]


async def test_one_that_is_dead_lets_the_next_of_its_order_go_on(stand: Stand) -> None:
    for name in ("a1", "a2"):
        await stand.queue.put(item(name, order="a"))
    (first,) = await stand.queue.take(10, LONG)
    assert await stand.queue.end(ended(first, b"{}", "it is broken"))
    assert names(await stand.queue.take(10, LONG)) == ["a2"]


async def test_orders_of_one_name_are_one_order_whoever_claims(stand: Stand) -> None:
    for number in range(6):
        await stand.queue.put(item(f"a{number}", order="a"))
    done: list[str] = []
    while len(done) < 6:
        each = await asyncio.gather(*(one.take(10, LONG) for one in (stand.queue, *stand.others)))
        (held,) = [one for found in each for one in found]
        assert await stand.queue.end(ended(held))
        done.append(held.call_id)
    assert done == [f"a{number}" for number in range(6)]


async def test_one_that_comes_late_does_not_run_beside_a_later_one_of_its_order(
    stand: Stand,
) -> None:
    queue = stand.queue
    await queue.put(item("a2", order="a"))
    (held,) = await queue.take(10, LONG)
    for name in ("a3", "a1"):
        await queue.put(item(name, order="a"))
    await stand.come_late("a1")
    for one in (queue, *stand.others):
        assert list(await one.take(10, LONG)) == []
        assert list(await one.claim(["a1", "a2", "a3"], LONG)) == []
    assert list(await stand.shipping.send(10, window=10, again=LONG)) == []
    assert await queue.end(ended(held))
    (held,) = await queue.claim(["a3", "a1"], LONG)
    assert held.call_id == "a1"
    assert await queue.end(ended(held))
    assert names(await queue.take(10, LONG)) == ["a3"]


async def test_one_that_comes_late_goes_first_where_a_broker_has_a_later_one(stand: Stand) -> None:
    queue, shipping = stand.queue, stand.shipping
    await queue.put(item("a2", order="a"))
    assert [one.call_id for one in await shipping.send(10, window=10, again=OVER)] == ["a2"]
    await queue.put(item("a1", order="a"))
    await stand.come_late("a1")
    assert [one.call_id for one in await shipping.send(10, window=10, again=LONG)] == ["a1"]
    assert list(await queue.claim(["a2"], LONG)) == []
    (held,) = await queue.claim(["a1", "a2"], LONG)
    assert held.call_id == "a1"
    assert list(await queue.claim(["a2"], LONG)) == []
    assert await queue.end(ended(held))
    assert names(await queue.claim(["a2"], LONG)) == ["a2"]


async def test_of_one_order_one_runs_at_a_time_whenever_others_come_to_light(stand: Stand) -> None:
    everyone = (stand.queue, *stand.others)
    calls = [f"a{number}" for number in range(12)]
    await asyncio.gather(*(stand.queue.put(item(name, order="a")) for name in calls))
    for name in calls:
        each = await asyncio.gather(
            stand.come_late(name),
            *(one.take(10, LONG) for one in everyone),
            *(one.claim(calls, LONG) for one in everyone),
        )
        held = [one for found in each if found for one in found]
        held = held or list(await stand.queue.take(10, LONG))
        assert len(held) == 1
        assert await stand.queue.end(ended(held[0]))
    assert (await stand.queue.depth()).waiting == 0


async def test_tenants_take_turns_whoever_has_most(stand: Stand) -> None:
    for number in range(20):
        await stand.queue.put(item(f"many-{number}", "many"))
    for tenant in ("one", "two"):
        await stand.queue.put(item(f"of-{tenant}", tenant))
    first = await stand.queue.take(6, LONG)
    assert Counter(one.tenant for one in first) == {"many": 2, "one": 1, "two": 1}
    assert Counter(one.tenant for one in await stand.queue.take(6, LONG)) == {"many": 6}
    # One at a time, too.
    await stand.queue.put(item("more", "one"))
    turns = [(await stand.queue.take(1, LONG))[0].tenant for _ in range(2)]
    assert set(turns) == {"many", "one"}


async def test_more_tenants_than_are_asked_for_all_have_their_turn(stand: Stand) -> None:
    tenants = {f"t{number:02}" for number in range(40)}
    for tenant in sorted(tenants):
        for number in range(3):
            await stand.queue.put(item(f"{tenant}-{number}", tenant))
    seen: Counter[str] = Counter()
    while (await stand.queue.depth()).waiting:
        seen.update(one.tenant for one in await stand.queue.take(10, LONG))
        # Nobody has two turns more than anybody else.
        assert max(seen.values()) - min(seen[one] for one in tenants) <= 2
    assert seen == dict.fromkeys(tenants, 3)


async def test_so_many_of_a_tenant_are_with_the_broker_at_a_time(stand: Stand) -> None:
    queue, shipping = stand.queue, stand.shipping
    for number in range(10):
        await queue.put(item(f"many-{number}", "many"))
    await queue.put(item("of-one", "one"))
    parcels = await shipping.send(100, window=4, again=LONG)
    assert Counter(one.tenant for one in parcels) == {"many": 4, "one": 1}
    assert list(await shipping.send(100, window=4, again=LONG)) == []
    sent = [one.call_id for one in parcels if one.tenant == "many"]
    held = await queue.claim(sent[:2], LONG)
    assert list(await shipping.send(100, window=4, again=LONG)) == []
    for one in held:
        assert await queue.end(ended(one))
    assert len(await shipping.send(100, window=4, again=LONG)) == 2
    assert (await queue.depth()).waiting == 4


async def test_what_is_sent_is_claimed_once_and_sent_again_where_nobody_did(stand: Stand) -> None:
    queue, shipping = stand.queue, stand.shipping
    for name in ("a1", "a2", "b"):
        await queue.put(item(name, order=name[0] if name[-1].isdigit() else ""))
    parcels = await shipping.send(10, window=10, again=OVER)
    assert [(one.call_id, one.key, one.message) for one in parcels] == [
        ("a1", "a", b"asked a1"),
        ("b", "b", b"asked b"),
    ]
    # What is sent is taken only by whoever was brought it.
    assert list(await queue.take(10, LONG)) == []
    assert names(await queue.claim(["a1", "a2", "a1"], LONG)) == ["a1"]
    assert list(await queue.claim(["a1"], LONG)) == []
    await shipping.unsent(["a1", "b"])
    assert [one.call_id for one in await shipping.send(10, window=10, again=LONG)] == ["b"]
    assert await queue.sweep() == 0
    assert await shipping.known(["a1", "b", "c"]) == {"a1": "acme", "b": "acme"}


async def test_the_same_call_is_never_given_to_two(stand: Stand) -> None:
    everyone = (stand.queue, *stand.others)
    puts = [stand.queue.put(item(f"c{number}", f"t{number % 3}")) for number in range(60)]
    await asyncio.gather(*puts)
    found: list[str] = []
    while (await stand.queue.depth()).waiting:
        each = await asyncio.gather(
            *(one.take(7, LONG) for one in everyone),
            *(one.claim([f"c{number}" for number in range(60)], LONG) for one in everyone[:2]),
        )
        found += [one.call_id for some in each for one in some]
    assert sorted(found) == sorted(f"c{number}" for number in range(60))


async def test_who_stops_waiting_for_a_put_has_put_it_all_the_same(stand: Stand) -> None:
    puts = [asyncio.create_task(stand.queue.put(item(f"c{number}"))) for number in range(5)]
    await asyncio.sleep(0)
    for one in puts[::2]:
        one.cancel()
    ends = await asyncio.gather(*puts, return_exceptions=True)
    assert not [one for one in ends if isinstance(one, StoreError)]
    await stand.queue.put(item("last"))
    assert len(await stand.queue.take(10, LONG)) == 6


async def test_who_stops_waiting_for_an_end_has_ended_it_all_the_same(stand: Stand) -> None:
    held = await taken(stand)
    ending = asyncio.create_task(stand.queue.end(ended(held)))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)
    assert not await stand.queue.end(ended(held))
    assert len(await stand.queue.over(["a"])) == 1
