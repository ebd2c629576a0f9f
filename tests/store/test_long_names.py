"""Names that callers bring: those that no store can hold are refused in words, others are kept."""

from pathlib import Path

import msgspec
import pytest

from tests.house import until
from tests.people.receiver import receiving
from toolgate import Caller, Toolgate, identity, tool
from toolgate.call import Turn
from toolgate.errors import InvalidRequest, StoreUnavailable
from toolgate.ledger.ledger import Which
from toolgate.settings.execution import Events
from toolgate.settings.settings import Settings, Store
from toolgate.store.text import json_text

pytestmark = pytest.mark.req("X1", "D1")
MOST = 512
LONG = {
    "letters": "x" * (MOST + 1),
    "two bytes each": "é" * (MOST // 2 + 1),
    "four bytes each": "🙂" * (MOST // 4 + 1),
    "lone surrogates": "\ud800" * (MOST // 6 + 1),
    "without a store's bytes": "\0" * (MOST // 4 + 1),
    "a million": "x" * 1_000_000,
}
FIT = {
    "letters": "x" * MOST,
    "two bytes each": "é" * (MOST // 2),
    "four bytes each": "🙂" * (MOST // 4),
    "lone surrogates": "\ud800" * (MOST // 6),
    "without a store's bytes": "\0" * (MOST // 4),
}


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send something."""
    return to


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_what_is_too_long_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidRequest, match="'user' of a Caller is a text of at most 512"):
        Caller(tenant="acme", user=text)
    with pytest.raises(InvalidRequest, match="'persona' of a Caller is a text of at most 512"):
        Caller(tenant="acme", persona=text)
    with pytest.raises(InvalidRequest, match="'session' of a Caller is a text of at most 512"):
        Caller(tenant="acme", session=text)
    with pytest.raises(InvalidRequest, match="'group' of a Turn is a text of at most 512"):
        Turn(group=text)
    with pytest.raises(InvalidRequest, match="'id' of a Turn is a text of at most 512"):
        Turn(group="g", id=text)
    with pytest.raises(InvalidRequest, match="'roles' of a Caller is a text of at most 512"):
        Caller(tenant="acme", roles=("fine", text))


def test_roles_have_an_end() -> None:
    roles = tuple(f"r{number}" for number in range(65))
    assert Caller(tenant="acme", roles=roles[:64]).roles == roles[:64]
    with pytest.raises(InvalidRequest, match="at most 64 roles"):
        Caller(tenant="acme", roles=roles)


def house(root: Path, url: str, events: Events | None = None) -> Settings:
    return Settings(root=root, store=Store(url=url), events=events or Events())


@pytest.mark.parametrize("text", FIT.values(), ids=FIT)
async def test_what_fits_is_kept_and_found(tmp_path: Path, url: str, text: str) -> None:
    # No caller is let in of whom no policy could be told.
    own = text.replace("\ud800", "x")
    me = Caller(
        tenant="acme", agent="a" * 63, user=own, persona=own, session=own, roles=(own,) * 64
    )
    turn = Turn(group=text, id=text)
    async with Toolgate.open(house(tmp_path, url)) as gate:
        gate.add(send)
        first = await gate.call("send", {"to": "bob"}, caller=me, turn=turn)
        assert first.ok, first
        again = await gate.call("send", {"to": "bob"}, caller=me, turn=turn)
        assert (again.call_id, again.cached) == (first.call_id, True)
        [row] = await gate.ledger.search(Which(tenant="acme", limit=5))
        # What was read from a record can be a caller again.
        assert Caller(tenant="acme", user=row.user, session=row.session)


async def test_without_the_bound_a_store_would_seem_to_be_away(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "_SURELY_FITS", 10**9)
    # Such that no server can make it smaller.
    text = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(3_000))
    async with Toolgate.open(house(tmp_path, url)) as gate:
        gate.add(send)
        me = Caller(tenant="acme", agent="clerk", user=text)
        sent = gate.call("send", {"to": "bob"}, caller=me, turn=Turn(group=text))
        if url.startswith("sqlite"):
            assert (await sent).ok
        else:
            with pytest.raises(StoreUnavailable):
                await sent


@pytest.mark.req("S7")
@pytest.mark.parametrize("text", ["\ud800", "a\0b", "é 🙂"])
async def test_events_tell_of_calls_whatever_their_names_hold(
    tmp_path: Path, url: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "s" * 40)
    me = Caller(tenant="acme", agent="clerk", user="ann")
    async with receiving() as receiver:
        events = Events(url=receiver.url, secret_env="HOOK_SECRET")  # noqa: S106  a variable's name
        async with Toolgate.open(house(tmp_path, url, events)) as gate:
            gate.add(send)
            found = await gate.call("send", {"to": "x"}, caller=me, turn=Turn(group=text, id=text))
            assert found.ok, found
            await until(lambda: len(receiver.got) == 2)
    shown = text.encode("utf-8", "backslashreplace").decode()
    assert {got.body["turn_group"] for got in receiver.got} == {shown}


def test_without_the_escapes_an_event_could_not_be_written() -> None:
    with pytest.raises(UnicodeEncodeError):
        msgspec.json.encode({"turn_group": "\ud800"})
    assert json_text({"turn_group": ["\ud800"], "x": 1}) == '{"turn_group":["\\\\ud800"],"x":1}'
