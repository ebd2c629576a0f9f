"""Queued calls that are dead, and ends that others are told of: in memory and over every store."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.queue.stand import KINDS, LONG, OVER, Stand, ended, item, names, stood
from toolgate.queue.queue import Stage
from toolgate.queue.shipping import MOST_WHOLE, Poison

pytestmark = pytest.mark.req("P6")


@pytest.fixture(params=KINDS)
async def stand(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stand]:
    """An empty queue."""
    async with stood(request, tmp_path) as found:
        yield found


async def died(stand: Stand, name: str, tenant: str = "acme", order: str = "") -> None:
    await stand.queue.put(item(name, tenant, order=order))
    (held,) = await stand.queue.claim([name], LONG)
    assert await stand.queue.end(ended(held, b"{}", f"{name} is broken"))


async def test_the_dead_are_shown_newest_first_and_by_tenant(stand: Stand) -> None:
    for number in range(4):
        await died(stand, f"c{number}", ("acme", "globex")[number % 2])
    found = await stand.dead.page("")
    assert [one.call_id for one in found] == ["c3", "c2", "c1", "c0"]
    assert {(one.stage, one.why) for one in found[:1]} == {(Stage.DEAD, "c3 is broken")}
    assert [one.call_id for one in await stand.dead.page("acme")] == ["c2", "c0"]
    assert [one.call_id for one in await stand.dead.page("", before="c3", most=1)] == ["c2"]
    assert (await stand.queue.depth()).dead == 4


async def test_one_that_is_dead_is_tried_again_as_if_for_the_first_time(stand: Stand) -> None:
    await died(stand, "a")
    before = await stand.queue.find("acme", "a")
    assert not await stand.dead.again("globex", "a", who="ann", why="")
    assert await stand.dead.again("acme", "a", who="ann", why="it is mended")
    assert not await stand.dead.again("acme", "a", who="ann", why="twice")
    after = await stand.queue.find("acme", "a")
    assert before is not None
    assert after is not None
    assert (after.stage, after.attempts, after.ended_ns, after.why) == (Stage.WAITING, 0, 0, "")
    # It has not waited for all the time that it was dead.
    assert after.queued_ns >= before.ended_ns
    (held,) = await stand.queue.take(10, LONG)
    # Whoever held it when it died holds nothing now.
    assert (held.attempts, held.fence, held.late) == (1, 2, False)
    assert held.message == b"asked a"
    assert await stand.queue.end(ended(held))
    assert list(await stand.shipping.untold(10, after=0)) != []


async def test_one_that_is_tried_again_does_not_run_beside_others_of_its_order(
    stand: Stand,
) -> None:
    await died(stand, "a1", order="a")
    await stand.queue.put(item("a2", order="a"))
    await stand.queue.put(item("a3", order="a"))
    (held,) = await stand.queue.take(10, LONG)
    assert held.call_id == "a2"
    assert await stand.dead.again("acme", "a1", who="ann", why="")
    assert list(await stand.queue.take(10, LONG)) == []
    assert list(await stand.queue.claim(["a1"], LONG)) == []
    done: list[str] = []
    while held.call_id != "a1":
        assert await stand.queue.end(ended(held))
        (held,) = await stand.queue.take(10, LONG)
        done.append(held.call_id)
    assert done == ["a3", "a1"]


async def test_what_is_no_call_is_dead_once_and_cannot_be_tried_again(stand: Stand) -> None:
    poison = Poison(place="requests/0/7", content=b"{no json", why="it cannot be read")
    await stand.shipping.bury([poison])
    await stand.shipping.bury([poison])
    (found,) = await stand.dead.page("")
    assert (found.call_id, found.tenant, found.why) == ("requests/0/7", "", "it cannot be read")
    for tenant in ("", "acme"):
        assert not await stand.dead.again(tenant, found.call_id, who="ann", why="")
    assert list(await stand.dead.page("")) == [found]
    assert await stand.queue.waiting() == {}
    (untold,) = await stand.shipping.untold(10, after=0)
    assert (untold.stage, untold.message, untold.output) == (Stage.DEAD, b"{no json", b"")


def poison(place: str) -> Poison:
    return Poison(place=place, content=b"{no json", why="it cannot be read")


async def contents(stand: Stand, many: int) -> int:
    """Of so many messages that nobody could read, how many are kept with what they held."""
    await stand.shipping.bury([poison(f"requests/0/{number}") for number in range(many - 5)])
    await stand.shipping.bury([poison(f"requests/1/{number}") for number in range(5)])
    assert (await stand.queue.depth()).dead == many
    return sum(bool(one.message) for one in await stand.shipping.untold(2 * many, after=0))


async def test_who_floods_the_queue_with_garbage_does_not_fill_the_store(stand: Stand) -> None:
    assert await contents(stand, MOST_WHOLE + 9) == MOST_WHOLE
    # Whoever looks after them has room for the next ones.
    assert await stand.dead.discard_unreadable(who="ann", why="garbage") == MOST_WHOLE + 9
    await stand.shipping.bury([poison("requests/2/0")])
    last = {one.call_id: one.message for one in await stand.shipping.untold(9_999, after=0)}
    assert last["requests/2/0"] == b"{no json"


async def test_without_the_bound_all_of_it_would_be_kept(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("toolgate.store.shipping", "toolgate.testing.shipping"):
        monkeypatch.setattr(f"{module}.MOST_WHOLE", 10 * MOST_WHOLE)
    assert await contents(stand, MOST_WHOLE + 9) == MOST_WHOLE + 9


async def test_what_is_discarded_is_dead_no_more_and_comes_back_by_nothing(stand: Stand) -> None:
    queue, shipping, dead = stand.queue, stand.shipping, stand.dead
    await died(stand, "a")
    await shipping.bury([poison("requests/0/7")])
    for tenant, name in (("globex", "a"), ("", "a"), ("acme", "requests/0/7"), ("acme", "b")):
        assert not await dead.discard(tenant, name, who="ann", why="")
    assert (await queue.depth()).dead == 2
    assert await dead.discard("acme", "a", who="ann", why="nobody wants it")
    assert await dead.discard("", "requests/0/7", who="ann", why="garbage")
    assert (await queue.depth()).dead == 0
    assert list(await dead.page("")) == []
    assert not await dead.discard("acme", "a", who="ann", why="twice")
    # Neither an operator nor what a broker brings once more makes it run.
    assert not await dead.again("acme", "a", who="ann", why="")
    await shipping.adopt([item("a")])
    await shipping.bury([poison("requests/0/7")])
    assert list(await queue.claim(["a", "requests/0/7"], LONG)) == []
    assert list(await queue.take(10, LONG)) == []
    assert (await queue.depth()).dead == 0
    # Who asks for it hears what it heard before, and so does who is told of ends.
    (kept,) = await queue.over(["a"])
    assert (kept.stage, kept.output, kept.why) == (Stage.DONE, b"{}", "a is broken")
    assert [one.call_id for one in await shipping.untold(10, after=0)] == ["a"]


async def test_what_is_not_dead_is_not_discarded(stand: Stand) -> None:
    queue, dead = stand.queue, stand.dead
    for name in ("taken", "sent", "over", "waiting"):
        await queue.put(item(name))
    (held,) = await queue.claim(["taken"], LONG)
    (over,) = await queue.claim(["over"], LONG)
    assert await queue.end(ended(over))
    assert [one.call_id for one in await stand.shipping.send(1, window=9, again=LONG)] == ["sent"]
    for name in ("taken", "sent", "over", "waiting"):
        assert not await dead.discard("acme", name, who="ann", why="")
        assert not await dead.again("acme", name, who="ann", why="")
    assert await dead.discard_unreadable(who="ann", why="") == 0
    # All of them go their way.
    assert await queue.end(ended(held))
    assert names(await queue.claim(["sent", "waiting"], LONG)) == ["sent", "waiting"]


async def test_who_discards_and_who_tries_again_at_once_are_not_both_right(stand: Stand) -> None:
    many = 12
    for number in range(many):
        name = f"c{number}"
        await died(stand, name)
        deciding = asyncio.gather(
            stand.dead.discard("acme", name, who="ann", why="too late"),
            stand.dead.again("acme", name, who="bob", why="mended"),
        )
        claiming = asyncio.gather(
            *(one.claim([name], LONG) for one in (stand.queue, *stand.others))
        )
        await stand.shipping.adopt([item(name)])
        discarded, retried = await deciding
        assert discarded is not retried
        taken = [one for found in await claiming for one in found]
        taken += await stand.queue.claim([name], LONG)
        assert len(taken) == int(retried)
        kept = await stand.queue.find("acme", name)
        assert kept is not None
        assert kept.stage is (Stage.TAKEN if retried else Stage.DONE)
    assert (await stand.queue.depth()).dead == 0


async def test_all_that_nobody_could_read_is_discarded_and_no_call(stand: Stand) -> None:
    assert await stand.dead.discard_unreadable(who="ann", why="") == 0
    await died(stand, "a")
    await stand.shipping.bury([poison(f"requests/0/{number}") for number in range(7)])
    assert await stand.dead.discard_unreadable(who="ann", why="garbage") == 7
    assert [one.call_id for one in await stand.dead.page("")] == ["a"]
    assert await stand.dead.discard_unreadable(who="ann", why="garbage") == 0


async def test_what_another_system_sends_is_taken_in_once(stand: Stand) -> None:
    await stand.shipping.adopt([item("a"), item("b")])
    (held,) = await stand.queue.claim(["a"], LONG)
    await stand.shipping.adopt([item("a", "globex"), item("c")])
    assert names(await stand.queue.take(10, LONG)) == ["b", "c"]
    assert await stand.queue.end(ended(held))


async def test_ends_are_told_until_somebody_has_told_them(stand: Stand) -> None:
    for name in ("a", "b"):
        await stand.queue.put(item(name))
    first, second = await stand.queue.take(2, LONG)
    assert list(await stand.shipping.untold(10, after=0)) == []
    # What is not over is not told of.
    await stand.shipping.told(["b"])
    assert await stand.queue.end(ended(first, b"one"))
    assert await stand.queue.end(ended(second, b"two"))
    assert list(await stand.shipping.untold(10, after=LONG)) == []
    found = await stand.shipping.untold(10, after=OVER)
    assert [(one.call_id, one.output, one.message) for one in found] == [
        ("a", b"one", b""),
        ("b", b"two", b""),
    ]
    await stand.shipping.told(["a"])
    assert [one.call_id for one in await stand.shipping.untold(10, after=OVER)] == ["b"]
