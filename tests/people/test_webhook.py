"""Events over HTTP: signed, at least once, in order, and bounded."""

import hashlib
import hmac
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.house import HERE, ME, until
from tests.people.receiver import SECRET, Got, Receiver, receiving
from tests.people.test_outbox import event
from toolgate import Toolgate, Turn, clock, tool
from toolgate.errors import Overloaded, SettingsInvalid
from toolgate.net.client import HttpClient
from toolgate.settings.execution import Events
from toolgate.settings.settings import Settings
from toolgate.sinks import publisher
from toolgate.sinks.publisher import Publisher
from toolgate.sinks.webhook import Webhook
from toolgate.testing.outbox import MemoryOutbox

pytestmark = pytest.mark.req("S7")
VARIABLE = "PEOPLE_TEST_SECRET"


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send a mail."""
    return to


@tool(effect="irreversible", requires_approval=True)
async def pay(to: str) -> str:
    """Pay."""
    return to


@tool(effect="pure")
async def look() -> str:
    """Look."""
    return "seen"


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as one:
        yield one


@pytest.fixture
async def gate(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Toolgate]:
    monkeypatch.setenv(VARIABLE, SECRET)
    events = Events(url=receiver.url, secret_env=VARIABLE)
    async with Toolgate.open(Settings(root=tmp_path, events=events)) as opened:
        opened.add(send, pay, look)
        yield opened


def is_signed(got: Got, secret: str = SECRET) -> bool:
    at = got.headers["X-Toolgate-Timestamp"]
    signed = hmac.new(secret.encode(), at.encode() + b"." + got.raw, hashlib.sha256)
    return hmac.compare_digest(got.headers["X-Toolgate-Signature"], f"v1={signed.hexdigest()}")


async def test_every_side_effect_and_every_question_is_sent_and_signed(
    gate: Toolgate, receiver: Receiver
) -> None:
    output = await gate.call("send", {"to": "bob"}, caller=ME, turn=Turn(group="t1"))
    asked = await gate.call("pay", {"to": "bob"}, caller=ME)
    await gate.call("look", caller=ME)
    assert asked.error is not None
    await gate.approvals.approve(asked.error.details["approval_id"], by="boss")
    await until(lambda: len(receiver.got) >= 4)
    assert sorted(receiver.kinds) == [
        "approval.approved",
        "approval.requested",
        "side_effect.completed",
        "side_effect.started",
    ]
    assert all(is_signed(got) for got in receiver.got)
    assert not any(is_signed(got, "another secret") for got in receiver.got)
    own = [got.body for got in receiver.got if got.body["call_id"] == output.call_id]
    assert [one["kind"] for one in own] == ["side_effect.started", "side_effect.completed"]
    for got in receiver.got:
        assert got.id == got.body["id"]
        assert got.headers["Content-Type"] == "application/json"
        assert abs(int(got.headers["X-Toolgate-Timestamp"]) - clock.unix_ns() // 10**9) < 60


async def test_subscribers_and_receivers_are_told_the_same_ids(
    gate: Toolgate, receiver: Receiver
) -> None:
    events = gate.events()
    await gate.call("send", {"to": "bob"}, caller=ME)
    heard = {(await anext(events)).id for _ in range(2)}
    await until(lambda: len(receiver.got) == 2)
    assert {got.id for got in receiver.got} == heard


@pytest.mark.parametrize("status", [500, 503, 404, 301])
async def test_what_was_not_taken_is_sent_again_with_the_same_id_and_in_order(
    gate: Toolgate, receiver: Receiver, status: int
) -> None:
    receiver.status = lambda _got: status if len(receiver.got) <= 2 else 200
    await gate.call("send", {"to": "bob"}, caller=ME)
    await until(lambda: len(receiver.got) == 4)
    first, second, third, fourth = receiver.got
    assert first.id == second.id == third.id
    assert first.raw == third.raw
    assert receiver.kinds[2:] == ["side_effect.started", "side_effect.completed"]
    assert fourth.id != first.id


async def test_an_event_that_is_never_taken_holds_up_no_other_call(
    gate: Toolgate, receiver: Receiver
) -> None:
    receiver.status = lambda got: 400 if got.body["payload"].get("args") == {"to": "bad"} else 200
    await gate.call("send", {"to": "bad"}, caller=ME)
    good = await gate.call("send", {"to": "good"}, caller=ME)
    await until(lambda: [got.body["call_id"] for got in receiver.got].count(good.call_id) == 2)


async def test_without_a_secret_it_does_not_start(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    events = Events(url=receiver.url, secret_env=VARIABLE)
    with pytest.raises(SettingsInvalid, match=VARIABLE):
        async with Toolgate.open(Settings(root=tmp_path, events=events)):
            pass


@pytest.mark.req("V5")
async def test_with_a_secret_that_can_be_guessed_it_does_not_start(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "fifteen letters")
    events = Events(url=receiver.url, secret_env=VARIABLE)
    with pytest.raises(SettingsInvalid) as refused:
        async with Toolgate.open(Settings(root=tmp_path, events=events)):
            pass
    told = refused.value.message
    assert f"events.secret_env: {VARIABLE} holds fewer than 16 characters" in told
    assert "openssl rand -hex 32" in told
    assert "fifteen" not in told


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    one = HttpClient(HERE)
    yield one
    await one.close()


async def test_a_receiver_that_is_away_is_asked_again_and_again(client: HttpClient) -> None:
    outbox = MemoryOutbox()
    outbox.put(event("a"))
    publisher = Publisher(outbox, Webhook(client, "http://127.0.0.1:1/events", SECRET))
    assert await publisher.once() == 1
    assert await publisher.once() == 0, "not at once"
    assert await outbox.waiting() == 1


async def test_when_too_many_events_wait_side_effects_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    monkeypatch.setattr("toolgate.recording.MOST_WAITING", 3)
    # They are counted, and tried again, without a pause that is meant for a receiver's relief.
    for name, value in (("_COUNT_EVERY", 1), ("_PAUSE", 0.01), ("_LAST_AGAIN", 0.05)):
        monkeypatch.setattr(publisher, name, value)
    receiver.status = lambda _got: 503
    events = Events(url=receiver.url, secret_env=VARIABLE)
    async with Toolgate.open(Settings(root=tmp_path, events=events)) as gate:
        gate.add(send, look)
        refused: list[Overloaded] = []

        async def tried() -> None:
            try:
                await gate.call("send", {"to": "bob"}, caller=ME)
            except Overloaded as error:
                refused.append(error)

        while not refused:
            await tried()
        assert refused[0].retryable
        assert "events" in str(refused[0])
        assert (await gate.call("look", caller=ME)).ok, "what tells of nothing goes on"
        # Once they are taken, calls go on.
        receiver.status = lambda _got: 200
        while True:
            refused.clear()
            await tried()
            if not refused:
                break
