"""Killed between the steps of what is more than one call: undo, approval, events, start, reload."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.house import until
from tests.once.books import Books
from tests.once.recorder import Recorder
from tests.once.staff import Hand, Staff
from tests.people.receiver import receiving
from tests.store.places import fresh_url
from toolgate.toolfiles import read_tool_file

pytestmark = [pytest.mark.req("S3", "S4", "S6", "S7"), pytest.mark.timeout(300)]
KILLS = int(os.environ.get("TOOLGATE_ONCE_KILLS", "20"))
AT_ONCE = 5
STEPS = 3
dice = random.Random(11)  # noqa: S311  the same dice each time


async def gone(hand: Hand) -> None:
    async with asyncio.timeout(20):
        await hand.gone.wait()


async def in_turns(work: Callable[[int], Awaitable[None]]) -> None:
    """A few at once, until there have been enough kills."""
    for first in range(0, KILLS, AT_ONCE):
        await asyncio.gather(*(work(number) for number in range(first, first + AT_ONCE)))


@pytest.mark.parametrize("point", ["CP10", "CP11"])
async def test_killed_in_an_undo_the_next_goes_on_in_order_and_undoes_each_once(
    point: str, staff: Staff, recorder: Recorder, books: Books
) -> None:
    keys = {f"g{number}": [f"g{number}-{one}" for one in range(STEPS)] for number in range(KILLS)}

    async def die(number: int) -> None:
        at = dice.randint(1, STEPS)
        hand = await staff.start(f"{point}:{at}", lease=60.0)
        group = f"g{number}"
        for key in keys[group]:
            assert (await hand.call("opened", key, turn=group))["status"] == "success"
        assert await hand.ask(verb="undo", group=group) is None
        await gone(hand)

    await in_turns(die)
    await books.age()
    fresh = await staff.start()
    async with asyncio.timeout(60):
        await books.closed()
    closed = [line["key"] for line in recorder.effects() if line["tool"] == "close"]
    for group, each in keys.items():
        assert [key for key in closed if key in each] == each[::-1], "the last first, each once"
        again = await fresh.ask(verb="undo", group=group)
        assert {item["result"] for item in again["items"]} == {"already_undone"}
    assert len(closed) == KILLS * STEPS
    rows = [row for row in await books.rows() if row.tool == "opened"]
    assert {row.state for row in rows} == {"compensated"}


async def test_killed_after_an_approval_it_is_still_good_for_one_call(
    staff: Staff, recorder: Recorder
) -> None:
    fresh = await staff.start()
    asked = await asyncio.gather(*(fresh.call("careful", f"a{one}") for one in range(KILLS)))
    assert {one["status"] for one in asked} == {"pending_approval"}

    async def die(number: int) -> None:
        hand = await staff.start("CP12")
        which = asked[number]["details"]["approval_id"]
        assert await hand.ask(verb="approve", which=which) is None
        await gone(hand)

    await in_turns(die)
    assert recorder.effects() == []
    for number in range(KILLS):
        answers = await asyncio.gather(*(fresh.call("careful", f"a{number}") for _ in range(3)))
        done = [one for one in answers if one["status"] == "success"]
        assert len({one["data"]["number"] for one in done}) == 1
    assert set(recorder.counts("careful").values()) == {1}
    # Used up: the same under another key asks again.
    more = await fresh.call("careful", "a0", once="another")
    assert more["status"] == "pending_approval"
    assert len(recorder.effects()) == KILLS


async def test_killed_before_events_are_sent_the_next_sends_each_of_them(
    staff: Staff, books: Books
) -> None:
    # Makes the tables.
    assert await (await staff.start()).ask(verb="reload")
    async with receiving() as receiver:
        for number in range(KILLS):
            # Those of the one before are due at once: it may be killed before its own call.
            await books.hurry_events()
            hand = await staff.start("CP8", lease=60.0, events=receiver.url, may_fall=True)
            await hand.call("pay", f"e{number}")
            await gone(hand)
        assert receiver.got == [], "each was killed before it sent any"
        started = {row.call_id for row in await books.rows()}
        assert started
        await books.hurry_events()
        await staff.start(events=receiver.url)

        def told() -> set[str]:
            kind = "side_effect.started"
            return {got.body["call_id"] for got in receiver.got if got.body["kind"] == kind}

        await until(lambda: told() == started)
        ids = [got.id for got in receiver.got]
        assert len(ids) == len(set(ids)), "none of those that were killed had sent it"


@pytest.mark.parametrize("lends", [fresh_url], ids=[""])
async def test_killed_in_a_migration_the_next_start_finds_nothing_or_all(staff: Staff) -> None:
    for _ in range(KILLS):
        hand = await staff.start("CP14", may_fall=True)
        assert hand.gone.is_set()
    fresh = await staff.start()
    assert (await fresh.call("pay", "a"))["status"] == "success"


async def test_killed_in_a_reload_every_call_is_on_record_with_one_version(
    staff: Staff, books: Books, tmp_path: Path
) -> None:
    file = tmp_path / "tools" / "dated.yaml"
    file.parent.mkdir()

    def write(number: int) -> str:
        """Its fingerprint; whoever reads meanwhile reads the one or the other."""
        entry = f'{{name: dated, description: "Version {number}.", config: {{builtin: timestamp}}'
        beside = tmp_path / "beside"
        beside.write_text(f"tools: [{entry}, effect: idempotent}}]", "utf-8")
        beside.replace(file)
        (spec,) = read_tool_file(file, file.name)
        return spec.fingerprint

    versions = [write(0)]
    for number in range(KILLS):
        hand = await staff.start("CP13:2")
        # One is over by then; of the others nobody knows.
        await hand.ask(tool="dated", args={}, once=f"v{number}-before", turn=None)
        calls = [
            hand.ask(tool="dated", args={}, once=f"v{number}-{one}", turn=None) for one in range(4)
        ]
        versions.append(write(number + 1))
        assert await hand.ask(verb="reload") is None
        await asyncio.gather(*calls)
        await gone(hand)
    await books.age()
    fresh = await staff.start()
    assert (await fresh.ask(tool="dated", args={}, once="last"))["status"] == "success"
    await books.closed()
    assert len(set(versions)) == KILLS + 1
    found = await books.versions("dated")
    assert found.pop("last") == versions[-1]
    assert found
    for key, fingerprint in found.items():
        number = int(key.removeprefix("v").partition("-")[0])
        assert fingerprint in versions[number : number + 2], key


async def test_killed_in_a_reload_the_next_start_has_the_new_definitions_whole(
    staff: Staff, recorder: Recorder, books: Books, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    await asyncio.to_thread(tools.mkdir)

    async def die(number: int) -> None:
        # The first time is the start itself.
        at = 1 + number % 2
        hand = await staff.start(f"CP13:{at}", may_fall=True)
        if at == 2:
            assert (await hand.call("pay", f"r{number}"))["status"] == "success"
            definition = f"tools: [{{name: echo{number}, provider: python, enabled: false}}]"
            await asyncio.to_thread((tools / f"{number}.yaml").write_text, definition, "utf-8")
            assert await hand.ask(verb="reload") is None
        await gone(hand)

    await in_turns(die)
    fresh = await staff.start()
    told = await fresh.ask(verb="reload")
    written = {f"echo{file.stem}" for file in tools.iterdir()}
    assert written
    assert written <= set(told["tools"])
    assert set(recorder.counts("pay").values()) == {1}
    assert {row.state for row in await books.rows()} == {"succeeded"}
