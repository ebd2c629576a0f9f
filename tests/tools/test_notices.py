"""What agents say: kept, told to whoever listens, and sent where the settings say, once."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest

from tests.people.receiver import SECRET, receiving
from tests.tools.asking import ME, opened, told
from toolgate import Caller, Toolgate
from toolgate.errors import SettingsInvalid
from toolgate.shelf import Place
from toolgate.tools.agent import inbox

pytestmark = pytest.mark.req("T3")
VARIABLE = "TOOLGATE_TEST_NOTIFY"
OTHERS = {
    "another user": Caller(tenant="acme", agent="clerk", user="ben"),
    "another agent": Caller(tenant="acme", agent="boss", user="ann"),
    "another tenant": Caller(tenant="globex", agent="clerk", user="ann"),
    "nobody": Caller(tenant="acme", agent="clerk"),
}
ANN = Caller(tenant="acme", agent="clerk", user="ann")


async def _texts(gate: Toolgate, caller: Caller, **args: Any) -> list[str]:
    found = await told(gate, "read_inbox", caller, **args)
    return [notice["text"] for notice in found["notices"]]


async def test_a_notice_is_sent_once_and_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    async with receiving() as receiver:
        agent = {"notify_url": receiver.url, "notify_secret_env": VARIABLE}
        async with opened(tmp_path, agent=agent) as gate:
            listening = gate.events("acme")
            args = {"message": "Half of it."}
            first = await gate.call("notify_user", args, caller=ME, idempotency_key="once")
            again = await gate.call("notify_user", args, caller=ME, idempotency_key="once")
            assert first.data["delivered"] == ["inbox", "events", "webhook"]
            assert again.data == first.data
            assert await _texts(gate, ME) == ["Half of it."]
            heard = [await anext(listening) for _ in range(3)]
    (got,) = receiver.got
    at = got.headers["X-Toolgate-Timestamp"]
    signed = hmac.new(SECRET.encode(), at.encode() + b"." + got.raw, hashlib.sha256)
    assert got.headers["X-Toolgate-Signature"] == f"v1={signed.hexdigest()}"
    assert got.body["kind"] == "agent.notification"
    assert got.body["payload"]["text"] == "Half of it."
    assert "agent.notification" in [event.kind for event in heard]


async def test_a_receiver_that_does_not_take_it_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    async with receiving() as receiver:
        receiver.status = lambda _got: 500
        agent = {"notify_url": receiver.url, "notify_secret_env": VARIABLE}
        async with opened(tmp_path, agent=agent) as gate:
            said = await told(gate, "response", text="Done.")
            assert said["delivered"] == ["inbox", "events"]
            assert "it answers with 500" in said["note"]
            assert receiver.url not in said["note"]
            assert await _texts(gate, ME) == ["Done."]
    assert len({got.id for got in receiver.got}) == 1


@pytest.mark.req("V5")
async def test_with_a_secret_that_can_be_guessed_it_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "fifteen letters")
    agent = {"notify_url": "http://127.0.0.1:1/in", "notify_secret_env": VARIABLE}
    with pytest.raises(SettingsInvalid) as refused:
        async with opened(tmp_path, agent=agent):
            pass
    told = refused.value.message
    assert f"tools.agent.notify_secret_env: {VARIABLE} holds fewer than 16 characters" in told
    assert "fifteen" not in told


async def test_without_a_secret_nothing_is_sent_unsigned(tmp_path: Path) -> None:
    async with receiving() as receiver:
        agent = {"notify_url": receiver.url, "notify_secret_env": "TOOLGATE_TEST_NO_SECRET"}
        async with opened(tmp_path, agent=agent) as gate:
            said = await told(gate, "response", text="Done.")
            assert "notify_secret_env" in said["note"]
        assert receiver.got == []


async def test_a_terminal_is_told_and_not_steered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opened(tmp_path, agent={"console": True}) as gate:
        await told(gate, "response", text="Done.\x1b]0;owned\x07\nReally.")
    shown = capsys.readouterr().err
    assert "[acme/clerk] Done." in shown
    assert "Really." in shown
    assert "\x1b" not in shown


async def test_an_inbox_has_an_end_and_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "MOST", 3)
    async with opened(tmp_path) as gate:
        for number in range(5):
            await told(gate, "notify_user", message=f"number {number}")
        found = await told(gate, "read_inbox")
        assert [one["text"] for one in found["notices"]] == ["number 2", "number 3", "number 4"]
        assert await _texts(gate, ME, after=found["notices"][0]["id"], limit=1) == ["number 3"]


async def test_nobody_else_reads_a_notice(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        await told(gate, "response", ANN, text="Only for Ann.")
        for who, other in OTHERS.items():
            assert await _texts(gate, other) == [], who
        assert await _texts(gate, ANN) == ["Only for Ann."]


async def test_without_the_guard_they_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everywhere(_tenant: str, kind: str, _owner: str) -> Place:
        return Place("acme", kind, "everybody")

    monkeypatch.setattr(inbox, "Place", everywhere)
    async with opened(tmp_path) as gate:
        await told(gate, "response", ANN, text="Only for Ann.")
        for who, other in OTHERS.items():
            assert await _texts(gate, other) == ["Only for Ann."], who
