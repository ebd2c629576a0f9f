"""A far side that knows calls by their keys: what nobody here saw end is asked for once more."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.once.far_side import FarSide
from tests.once.recorder import Recorder
from toolgate import Call, Caller, ToolError, Toolgate, Turn
from toolgate.call import Output
from toolgate.executor.recording import entries
from toolgate.ledger.entry import Entry
from toolgate.settings.settings import Settings, Store
from toolgate.storage import audit_trail

pytestmark = pytest.mark.req("S2", "S3")
ME = Caller(tenant="acme", agent="clerk")
TURN = Turn(group="t-1", id="1")
KEYED = {"header": "Idempotency-Key"}


class Post:
    """A gate whose letters arrive at the recorder. `then`: what becomes of the answer."""

    def __init__(self, gate: Toolgate, settings: Settings, far: FarSide) -> None:
        self.gate = gate
        self.settings = settings
        self.then = "answers"
        self._far = far
        for name, down in (("send", KEYED), ("drop", None)):
            keyed = {} if down is None else {"downstream_key": down}
            gate.add(self._work, name=name, effect="irreversible", **keyed)

    async def _work(self, call: Call, key: str) -> int:
        """Send it."""
        if self.then == "refuses":
            raise ToolError("the post office is closed", retryable=True)
        down = "" if call.spec.downstream_key is None else call.downstream_key
        asked = {"tool": call.spec.name, "key": key, "down": down}
        told = await self._far.ask(do="effect", call=call.id, **asked)
        if self.then == "breaks":
            raise ConnectionError("the answer got lost")
        return told["number"]

    async def call(self, name: str = "send", **more: Any) -> Output:
        return await self.gate.call(name, {"key": "k"}, caller=ME, turn=TURN, **more)

    async def state(self) -> list[tuple[str, int]]:
        entries = await self.gate.journal.entries("acme")
        return [(str(one.state), one.fence) for one in entries]


@pytest.fixture
async def post(url: str, recorder: Recorder, tmp_path: Path) -> AsyncGenerator[Post]:
    far = await FarSide.reach(recorder.port)
    settings = Settings(root=tmp_path, store=Store(url=url))
    async with Toolgate.open(settings) as gate:
        yield Post(gate, settings, far)
    await far.close()


def keys(recorder: Recorder) -> list[str]:
    return [line["down"] for line in recorder.lines()]


async def test_asked_for_again_it_runs_again_and_arrives_once(
    post: Post, recorder: Recorder
) -> None:
    post.then = "breaks"
    first = await post.call()
    assert first.status == "unknown"
    post.then = "answers"
    again = await post.call()
    assert (again.status, again.cached, again.call_id) == ("success", False, first.call_id)
    assert len(keys(recorder)) == 2
    assert len(set(keys(recorder))) == 1
    assert recorder.counts("send") == {"k": 1}
    assert again.data == recorder.numbers("send")["k"]
    assert (await post.call()).cached
    assert await post.state() == [("succeeded", 2)]
    async with audit_trail(post.settings) as trail:
        assert (await trail.verify()).problems == ()


async def test_without_the_first_ones_key_it_would_arrive_twice(
    post: Post, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(entry: Entry) -> str:
        return f"{entry.call_id}-{entry.fence}"

    monkeypatch.setattr(entries, "downstream_key", another)
    post.then = "breaks"
    await post.call()
    post.then = "answers"
    await post.call()
    assert recorder.counts("send") == {"k": 2}, "the guard is what the test above stands on"


async def test_of_those_who_ask_again_at_once_one_runs_it(post: Post, recorder: Recorder) -> None:
    post.then = "breaks"
    await post.call()
    post.then = "answers"
    outputs = await asyncio.gather(*(post.call(wait_s=20) for _ in range(8)))
    assert {one.data for one in outputs} == {recorder.numbers("send")["k"]}
    assert (len(keys(recorder)), recorder.counts("send")) == (2, {"k": 1})


async def test_an_attempt_that_did_nothing_says_nothing_about_the_first(
    post: Post, recorder: Recorder
) -> None:
    post.then = "breaks"
    await post.call()
    post.then = "refuses"
    await post.call()
    assert await post.state() == [("unknown", 2)]
    post.then = "answers"
    assert (await post.call()).ok
    assert recorder.counts("send") == {"k": 1}


async def test_a_far_side_that_takes_no_key_is_not_asked_again(
    post: Post, recorder: Recorder
) -> None:
    post.then = "breaks"
    await post.call("drop")
    post.then = "answers"
    again = await post.call("drop")
    assert (again.status, again.cached) == ("unknown", True)
    assert recorder.counts("drop") == {"k": 1}


@pytest.mark.parametrize(("name", "arrives"), [("send", 1), ("drop", 3)])
async def test_an_operator_runs_it_again_under_the_first_ones_key(
    post: Post, recorder: Recorder, name: str, arrives: int
) -> None:
    post.then = "breaks"
    first = await post.call(name)
    again = [await post.gate.settling.again("acme", first.call_id, who="boss", why="it was lost")]
    post.then = "answers"
    again.append(
        await post.gate.settling.again("acme", again[0].call_id, who="boss", why="and again")
    )
    assert [one.status for one in again] == ["unknown", "success"]
    assert len({first.call_id, *(one.call_id for one in again)}) == 3
    assert len(keys(recorder)) == 3
    assert recorder.counts(name) == {"k": arrives}
