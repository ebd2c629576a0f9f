"""Queued side effects that are refused before they begin: the queue brings them again, in time."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.blank import put_blank
from tests.house import ME, STORE, until
from tests.providers.service import Service
from tests.queue.yard import Yard, over
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, SHARED
from toolgate import Call, Extension, Toolgate, tool
from toolgate.configuration import load
from toolgate.errors import ProviderUnavailable
from toolgate.executor.extension import Priority
from toolgate.settings.execution import Limits
from toolgate.settings.fleet import Fleet

pytestmark = [pytest.mark.req("P6", "S2", "S3"), pytest.mark.timeout(120)]
KILLED = -9
NODE = {"work": "never"}
FAR = """\
tools:
  - name: pay_far
    provider: http
    config: {url: "http://127.0.0.1:PORT/pay", method: POST}
    execution: queued
    effect: irreversible
    input_schema: {type: object, additionalProperties: false}
  - name: put_far
    provider: http
    config: {url: "http://127.0.0.1:PORT/put", method: PUT}
    execution: queued
    effect: idempotent
    input_schema: {type: object, additionalProperties: false}
"""


@pytest.fixture(params=SHARED)
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Path]:
    """A folder whose house keeps its store in a file, or on a server."""
    async with AsyncExitStack() as stack:
        if request.param == FILE:
            put_blank(tmp_path / STORE)
        else:
            server: Server = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(server))
            monkeypatch.setenv("TOOLGATE_STORE__URL", url)
        yield tmp_path


def opened(
    place: Path, *extensions: Extension, **sections: Any
) -> AbstractAsyncContextManager[Toolgate]:
    file = place / "toolgate.toml"
    file.touch()
    return Toolgate.open(load(file).model_copy(update=sections), extensions=extensions)


async def tried(gate: Toolgate, call_id: str) -> None:
    """Until it was given back once."""
    async with asyncio.timeout(20):
        while True:
            entry = await gate.journal.find("acme", call_id)
            if entry is not None and entry.state == "released":
                return
            await asyncio.sleep(0.01)


async def test_what_found_no_place_is_run_when_there_is_one(place: Path) -> None:
    """One place, and nobody may wait for it: the bulkhead itself refuses."""
    did, go = list[int](), asyncio.Event()

    @tool(execution="queued", effect="irreversible")
    async def work(number: int) -> int:
        """Do it."""
        await go.wait()
        did.append(number)
        return number

    async with opened(place, limits=Limits(concurrency=1, waiting=0)) as gate:
        gate.add(work)
        first = asyncio.ensure_future(gate.call("work", {"number": 1}, caller=ME))
        second = asyncio.ensure_future(gate.call("work", {"number": 2}, caller=ME))
        async with asyncio.timeout(20):
            while "overloaded" not in [  # noqa: ASYNC110  the store tells nobody
                one.error_code for one in await gate.journal.entries("acme")
            ]:
                await asyncio.sleep(0.01)
        go.set()
        outputs = await asyncio.gather(first, second)
        assert [(one.status, one.data, one.cached) for one in outputs] == [
            ("success", 1, False),
            ("success", 2, False),
        ]
        assert sorted(did) == [1, 2]
        found = await gate.journal.entries("acme")
        assert sorted((one.state, min(one.fence, 2)) for one in found) == [
            ("succeeded", 1),
            ("succeeded", 2),
        ]


class Away(Extension):
    """Behind the record: what a tool needs cannot be reached, until it can."""

    priority = Priority.LOW

    def __init__(self) -> None:
        self.is_back = False
        self.tried = 0

    def before(self, _call: Call) -> None:
        self.tried += 1
        if not self.is_back:
            raise ProviderUnavailable("The far side is away.")


async def test_tried_as_often_as_it_may_it_is_dead_and_runs_once_it_is_tried_again(
    place: Path,
) -> None:
    did, away = list[int](), Away()

    @tool(execution="queued", effect="irreversible")
    def work(number: int) -> int:
        """Do it."""
        did.append(number)
        return number

    async with opened(place, away, queue=Fleet(attempts=2)) as gate:
        gate.add(work)
        output = await gate.call("work", {"number": 1}, caller=ME)
        assert output.error is not None
        assert output.error.code == "undelivered"
        assert away.tried == 2
        found = await gate.find("acme", output.call_id)
        assert found.entry is not None
        assert (found.entry.state, found.shown()["state"]) == ("released", "failed")
        away.is_back = True
        assert await gate.queue.dead.again("acme", output.call_id, who="ops", why="mended")
        (ended,) = await over(gate, [output.call_id])
        told = orjson.loads(ended.output)
        assert (ended.stage, told["status"], told["data"]) == ("done", "success", 1)
        assert did == [1]


async def test_discarded_it_has_ended_and_never_runs(place: Path) -> None:
    away = Away()

    @tool(execution="queued", effect="irreversible")
    def work() -> None:
        """Do it."""
        raise AssertionError

    async with opened(place, away, queue=Fleet(attempts=1)) as gate:
        gate.add(work)
        output = await gate.call("work", caller=ME)
        assert await gate.queue.dead.discard("acme", output.call_id, who="ops", why="too late")
        entry = await gate.journal.find("acme", output.call_id)
        assert entry is not None
        assert (entry.state, entry.error_code) == ("failed", "undelivered")
        assert (await gate.find("acme", output.call_id)).shown()["state"] == "failed"


async def test_too_late_for_another_try_it_is_on_record_as_expired(place: Path) -> None:
    away = Away()

    @tool(execution="queued", effect="irreversible")
    def work() -> None:
        """Do it."""
        raise AssertionError

    async with opened(place, away, queue=Fleet(expires=1, attempts=100)) as gate:
        gate.add(work)
        output = await gate.call("work", caller=ME, wait_s=0)
        await tried(gate, output.call_id)
        (ended,) = await over(gate, [output.call_id])
        told = orjson.loads(ended.output)
        assert (ended.stage, told["error"]["code"]) == ("done", "out_of_time")
        entry = await gate.journal.find("acme", output.call_id)
        assert entry is not None
        assert entry.state == "expired"


class Harbour:
    """A port that nobody listens at until somebody does."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Service]:
        found = Service()
        async with await asyncio.start_server(found.serve, sock=self._socket):
            yield found

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("name", ["pay_far", "put_far"])
@pytest.mark.parametrize("point", ["CP19", "CP20"])
async def test_killed_around_giving_it_back_it_is_never_done_twice(
    place: Path, point: str, name: str
) -> None:
    """Given back, it runs. Killed before that, nobody knows that it had not begun."""
    harbour = Harbour()
    allowed = f'[net]\nallow = ["127.0.0.1:{harbour.port}"]'
    (place / "yard").mkdir()
    with Yard(place / "yard", "", more=allowed) as yard:
        text = FAR.replace("PORT", str(harbour.port))
        (yard.root / "tools" / "far.yaml").write_text(text, "utf-8")
        async with yard.gate(**NODE) as gate:
            asked = await gate.call(name, caller=ME, wait_s=0)
            victim = yard.command("worker", TOOLGATE_CRASH_AT=point)
            assert await asyncio.to_thread(victim.wait, 60) == KILLED, yard.log
            left = await gate.journal.find("acme", asked.call_id)
            assert left is not None
            assert left.state == ("started" if point == "CP19" else "released")
            async with harbour.open() as far:
                yard.worker()
                (ended,) = await over(gate, [asked.call_id])
                told = orjson.loads(ended.output)
                is_lost = (point, name) == ("CP19", "pay_far")
                assert told["status"] == ("unknown" if is_lost else "success"), told
                await until(lambda: len(far.seen) == (0 if is_lost else 1))
            entry = await gate.journal.find("acme", asked.call_id)
            assert entry is not None
            assert entry.state == ("unknown" if is_lost else "succeeded")
    harbour.close()
