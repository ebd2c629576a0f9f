"""Names that take long: they hold up whoever asks for them, and nobody else."""

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import pytest

from tests.house import until
from toolgate import clock
from toolgate.errors import Overloaded
from toolgate.executor.resilience import places
from toolgate.executor.resilience.places import Places
from toolgate.net import resolver as resolving
from toolgate.net.addresses import Address
from toolgate.net.errors import NotSent
from toolgate.net.guard import Guard
from toolgate.net.resolver import Resolver

pytestmark = pytest.mark.req("P2")
HERE = (ip_address("1.1.1.1"),)


class Whose:
    """Who is served at the moment, in place of the call around."""

    name = "acme"


@pytest.fixture
def whose(monkeypatch: pytest.MonkeyPatch) -> type[Whose]:
    for module in (places, resolving):
        monkeypatch.setattr(module, "tenant", lambda: Whose.name)
    Whose.name = "acme"
    return Whose


class Names:
    """Those of `.slow` are not found until `go` is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = asyncio.Event()

    async def __call__(self, host: str) -> tuple[Address, ...]:
        self.asked.append(host)
        if host.endswith(".slow"):
            await self.go.wait()
        if host.endswith(".nowhere"):
            raise OSError("no such name")
        return HERE


@asynccontextmanager
async def slowly(resolver: Resolver, names: Names, count: int) -> AsyncGenerator[list[Any]]:
    waiting = [asyncio.create_task(resolver.addresses(f"n{at}.slow")) for at in range(count)]
    await until(lambda: len(names.asked) >= min(count, 4))
    yield waiting
    names.go.set()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_one_tenants_slow_names_hold_up_no_other_tenants(whose: type[Whose]) -> None:
    names = Names()
    resolver = Resolver(names)
    async with slowly(resolver, names, 30) as waiting:
        assert len(names.asked) == 4, "so many of a tenant at a time"
        mine = asyncio.create_task(resolver.addresses("quick.example"))
        await asyncio.sleep(0)
        whose.name = "globex"
        # Also a name that the first waits for already: it is not waited for with them.
        assert await resolver.addresses("quick.example") == HERE
        assert not any(one.done() for one in waiting)
    assert await mine == HERE, "and in its turn it is found for them, too"
    assert len(set(names.asked)) == 31


async def test_without_shares_they_would(
    whose: type[Whose], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "_EACH", 1_000)
    monkeypatch.setattr(resolving, "SECONDS", 0.05)
    names = Names()
    resolver = Resolver(names)
    async with slowly(resolver, names, 64):
        await until(lambda: len(names.asked) == 64)
        whose.name = "globex"
        with pytest.raises(TimeoutError):
            await resolver.addresses("quick.example")


async def test_a_slow_name_is_waited_for_so_long_and_asked_once(
    whose: type[Whose], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "SECONDS", 0.02)
    names = Names()
    resolver = Resolver(names)
    guard = Guard(resolver=resolver)
    with pytest.raises(NotSent, match=r"was not found within .* Nothing was sent") as late:
        await guard.check("http://a.slow/")
    assert late.value.retryable
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await resolver.addresses("a.slow")
    assert names.asked == ["a.slow"]
    whose.name = "globex"
    monkeypatch.setattr(resolving, "SECONDS", 30.0)
    asked = asyncio.create_task(resolver.addresses("a.slow"))
    names.go.set()
    await until(asked.done)
    assert (await guard.check("http://a.slow/")).addresses == HERE


async def test_a_name_that_is_not_there_is_not_asked_for_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names()
    guard = Guard(resolver=Resolver(names))
    for _ in range(3):
        with pytest.raises(NotSent, match="cannot be found"):
            await guard.check("http://a.nowhere/")
    assert names.asked == ["a.nowhere"]
    later = clock.monotonic_ns() + 3_000_000_000
    monkeypatch.setattr("toolgate.net.resolver.clock.monotonic_ns", lambda: later)
    with pytest.raises(NotSent):
        await guard.check("http://a.nowhere/")
    assert names.asked == ["a.nowhere"] * 2


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Generator[threading.Event]:
    """The system's resolver finds nothing but this machine, until it is let go."""
    go, real = threading.Event(), socket.getaddrinfo

    def look(host: Any, *args: Any, **how: Any) -> Any:
        if host != "localhost":
            go.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "later")
        return real(host, *args, **how)

    monkeypatch.setattr(socket, "getaddrinfo", look)
    yield go
    go.set()


def _looking() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "toolgate-name"]


async def test_look_ups_take_no_thread_of_other_work(
    stuck: threading.Event, whose: type[Whose]
) -> None:
    resolver = Resolver()
    waiting: list[asyncio.Task[tuple[Address, ...]]] = []
    for at in range(12):
        whose.name = f"t{at}"
        waiting += [asyncio.create_task(resolver.addresses(f"{at}.{n}.slow")) for n in range(4)]
        # They ask whose they are when they begin.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await until(lambda: len(_looking()) == 48)
    assert await asyncio.to_thread(lambda: "read") == "read"
    whose.name = "globex"
    assert ip_address("127.0.0.1") in await resolver.addresses("localhost")
    assert len(_looking()) >= 48
    assert all(one.daemon for one in _looking()), "no process stays for them"
    stuck.set()
    assert await asyncio.gather(*waiting) == [()] * 48


async def test_a_place_is_given_turn_by_turn(whose: type[Whose]) -> None:
    lane = Places(2, each=1, waiting=2)
    order: list[str] = []

    async def work(name: str, go: asyncio.Event) -> None:
        async with lane.held():
            order.append(name)
            await go.wait()

    go = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []
    for name in ("acme", "acme", "acme", "globex", "umbrella"):
        whose.name = name
        tasks.append(asyncio.create_task(work(name, go)))
        await asyncio.sleep(0)
    assert order == ["acme", "globex"]
    whose.name = "acme"
    with pytest.raises(Overloaded):
        await lane.take()
    tasks[1].cancel()
    go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(order) == ["acme", "acme", "globex", "umbrella"]
    for name in ("acme", "globex"):
        whose.name = name
        assert await lane.take() == name, "all places were left"
