"""Watching costs a bounded amount, of the house and of its server; who is over it is refused."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from tests.house import until
from tests.upstreams.bare import Bare, program
from toolgate.errors import Overloaded
from toolgate.upstreams import watches
from toolgate.upstreams.failures import Ending
from toolgate.upstreams.message import Json
from toolgate.upstreams.watches import Watches
from toolgate.upstreams.wire import Welcome, Wire

pytestmark = pytest.mark.req("P2")


class Told:
    """What a server was told."""

    def __init__(self) -> None:
        self.gone: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.lists: list[tuple[str, ...]] = []
        self.asked: list[tuple[str, str]] = []

    async def listen(self, uris: Sequence[str]) -> None:
        self.lists.append(tuple(uris))

    async def ask(self, method: str, params: Json) -> None:
        self.asked.append((method.removeprefix("resources/"), params["uri"]))

    async def watching(self, *, modern: bool = True) -> Callable[[str, Any], Any]:
        self.watches = Watches(self.ask)
        wire = cast("Wire", self)
        welcome = Welcome(version="x", is_modern=modern, capabilities={}, info={})
        await self.watches.begin(wire, welcome)
        return lambda uri, told: self.watches.add(wire, welcome, uri, told)


def nobody(_uri: str) -> None:
    """Hears it, and does nothing."""


async def test_many_who_come_at_once_are_told_of_together() -> None:
    told = Told()
    watch = await told.watching()
    uris = [f"a://{number}" for number in range(500)]
    leaves = await asyncio.gather(*(watch(uri, nobody) for uri in uris))
    # Each waits until the server was told of its own.
    assert sorted(told.lists[-1]) == sorted(uris)
    assert len(told.lists) <= 3
    for leave in leaves:
        leave()
    await until(lambda: told.lists[-1] == ())
    assert len(told.lists) <= 5
    await told.watches.close()


async def test_a_server_of_the_older_revision_is_told_one_by_one_and_again_when_it_is_back() -> (
    None
):
    told = Told()
    watch = await told.watching(modern=False)
    leaves = [await watch(f"a://{number}", nobody) for number in range(3)]
    assert told.asked == [("subscribe", f"a://{number}") for number in range(3)]
    leaves[0]()
    await until(lambda: told.asked[3:] == [("unsubscribe", "a://0")])
    await told.watches.begin(
        cast("Wire", told), Welcome(version="x", is_modern=False, capabilities={}, info={})
    )
    await until(lambda: sorted(told.asked[4:]) == [("subscribe", "a://1"), ("subscribe", "a://2")])
    await told.watches.close()


@pytest.mark.parametrize(("name", "most"), [("MOST", 3), ("MOST_LETTERS", 15)])
async def test_who_comes_when_it_is_full_is_refused_until_another_has_left(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, name, most)
    told = Told()
    watch = await told.watching(modern=False)
    leaves = [await watch(f"a://{number}", nobody) for number in range(3)]
    with pytest.raises(Overloaded, match="watched"):
        await watch("a://3", nobody)
    # What is watched already can be watched by others too.
    (await watch("a://2", nobody))()
    leaves[0]()
    heard: list[str] = []
    await watch("a://3", heard.append)
    told.watches.updated("a://3")
    assert heard == ["a://3"]
    await told.watches.close()


async def test_without_the_bound_more_would_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard-off control."""
    told = Told()
    watch = await told.watching(modern=False)
    for number in range(20):
        await watch(f"a://{number}", nobody)
    assert len(told.asked) == 20
    await told.watches.close()


@pytest.mark.parametrize("many", [0, 50])
async def test_what_is_below_a_watched_one_is_told_too(many: int) -> None:
    told = Told()
    watch = await told.watching(modern=False)
    heard: list[str] = []
    for uri in ("a://x", "a://y/", *(f"b://{number}" for number in range(many))):
        await watch(uri, heard.append)
    for uri in ("a://x", "a://x/1/2", "a://xx", "a://y", "a://y/1", "c://", "/" * 200):
        told.watches.updated(uri)
    assert heard == ["a://x", "a://x/1/2", "a://y/1"]
    heard.clear()
    told.watches.all_updated()
    assert len(heard) == 2 + many
    await told.watches.close()


async def test_a_program_that_reads_no_more_is_told_no_more() -> None:
    sandbox = Bare()
    upstream = program(sandbox=sandbox, script="watching")
    await upstream.open(20)

    async def watch(number: int) -> None:
        await upstream.watch(f"a://{number}/" + "x" * 3_000, nobody)

    # The control: it is told of a hundred, and in far fewer words than one by one.
    await asyncio.gather(*map(watch, range(100)))
    read = await upstream.request("resources/read", {"uri": "x"}, seconds=10)
    assert 300_000 < read["size"] < 1_500_000
    await upstream.request("resources/read", {"uri": "deaf"}, seconds=10)
    waiting = [asyncio.create_task(watch(number)) for number in range(100, 340)]
    done, late = await asyncio.wait(waiting, timeout=1)
    assert sandbox.last is not None
    assert sandbox.last.stdin.transport.get_write_buffer_size() < 2_500_000
    assert len(done) < len(waiting)
    for one in late:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await upstream.close()
