"""What agents, tools and servers wrote reaches a terminal as signs that can be seen."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from tests.cli.conftest import Run, as_json
from tests.cli.test_script import on_a_terminal
from tests.client.far_side import answer, far_side
from tests.house import open_gate
from toolgate import tool
from toolgate.call import Turn
from toolgate.caller import Caller
from toolgate.cli import show
from toolgate.cli.main import app
from toolgate.errors import InvalidRequest
from toolgate.executor.people.visible import visible_json
from toolgate.server.calls import read_turn
from toolgate.server.context import read_session

pytestmark = pytest.mark.req("V5")
# Title, clear screen, colour; reversed text; C1's own escape; a forged line; what is not there.
EVIL = "\x1b]0;P\x07\x1b[2J\x1b[31mE\u202ev\u009b31m\x7f\u200b\u2066\ufeff\U000e0041\r\nok: fake"
HIDDEN = {sign for sign in EVIL if not sign.isprintable()} - {"\n"}


def is_plain(text: str) -> bool:
    return not set(text) & HIDDEN


@pytest.mark.parametrize(
    "sign", [*"\x1b\x07\r\x7f\x9b\x85\xad\u200b\u200d\u2028\u202e\u2066\ufeff"]
)
def test_every_sign_that_hides_or_moves_is_written_out(
    sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show.line(f"a{sign}b")
    show.table(("x",), [(f"a{sign}b",)])
    show.aside(f"a{sign}b")
    show.warning(f"a{sign}b")
    show.as_json({"a": f"a{sign}b"})
    told = capsys.readouterr()
    assert sign not in told.out + told.err
    assert f"a\\u{ord(sign):04x}b" in told.out


def test_what_can_be_seen_stays_and_json_stays_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    seen = "naïve 日本語 🙂 \\u202e\ttab"
    show.line(seen)
    assert capsys.readouterr().out == f"{seen}\n"
    for text in (EVIL, "\U000e0101", "\U0001f600"):
        show.as_json({text: [text]})
        assert orjson.loads(capsys.readouterr().out) == {text: [text]}
    assert visible_json("\udcff") == "\\udcff"


@pytest.mark.parametrize("sign", [*"\x00\x1b\n\x9b\u202e\u2028"])
def test_a_turn_and_a_session_have_names_that_can_be_seen(sign: str) -> None:
    for wrong in (
        lambda: read_turn({"group": f"g{sign}"}),
        lambda: read_turn({"group": "g", "id": sign}),
        lambda: read_session(sign),
    ):
        with pytest.raises(InvalidRequest, match="cannot be seen"):
            wrong()
    assert read_turn({"group": "größe 日本 🙂", "id": "a b"})


def note(text: str) -> str:
    """Note it."""
    return text


async def _stored(root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A record as a program makes it, which no door has looked at."""
    async with open_gate(root) as gate:
        gate.add(tool(effect="irreversible")(note))
        caller = Caller(tenant="acme", agent="clerk", user=f"u{EVIL}")
        done = await gate.call("note", {"text": EVIL}, caller=caller, turn=Turn(group=f"g{EVIL}"))
    return done.call_id


def test_what_is_on_record_is_shown_plainly(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_id = asyncio.run(_stored(tmp_path, monkeypatch))
    for command in (("ledger", "list"), ("ledger", "show", call_id), ("explain", f"x{EVIL}")):
        for more in ((), ("--json",)):
            told = run(*command, "--tenant", "acme", *more)
            assert "fake" in told.output
            assert is_plain(told.output), command
            assert command[0] == "explain" or "\nok: fake" not in told.output
    [row] = as_json(run("ledger", "list", "--tenant", "acme", "--json"))
    assert row["turn_group"] == f"g{EVIL}", "the same text, as JSON writes it"
    drawn = on_a_terminal("ledger", "list", "--tenant", "acme", cwd=tmp_path).decode()
    assert "\u202e" not in drawn
    assert "\x1b[2J" not in drawn
    assert "\x1b[1m" in drawn, "colours of our own stay"


@contextmanager
def hostile(monkeypatch: pytest.MonkeyPatch, status: int, body: Any) -> Generator[None]:
    """A server that says this to every request."""
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with far_side(answer(status, body)) as side:
            monkeypatch.setenv("TOOLGATE_URL", side.url)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    monkeypatch.setenv("TOOLGATE_KEY", "tg_x")
    assert ready.wait(20)
    try:
        yield
    finally:
        over.set()
        thread.join(20)
        monkeypatch.delenv("TOOLGATE_URL")


COMMANDS = (
    ("tools", "list"),
    ("tools", "show", "x"),
    ("tenants", "list"),
    ("keys", "list"),
    ("approvals", "list"),
    ("ledger", "list"),
    ("ledger", "show", "c"),
    ("explain", "x"),
    ("call", "x"),
    ("doctor",),
)


def _ran(*command: str) -> Result:
    return CliRunner().invoke(app, list(command))


def test_a_servers_words_are_shown_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = {"code": f"evil{EVIL}", "detail": EVIL, "title": EVIL, "status": 400}
    output = {"ok": True, "status": "success", "data": EVIL, "call_id": "c"}
    for status, body in ((400, problem), (200, output)):
        with hostile(monkeypatch, status, body):
            told = [_ran(*one, *more) for one in COMMANDS for more in ((), ("--json",))]
        assert [one.output for one in told if not is_plain(one.output)] == []
        assert any("fake" in one.output for one in told)


NO_END: dict[str, Any] = {name: [] for name in ("tools", "approvals", "calls", "keys", "tenants")}
ODD: dict[str, Any] = {
    "wrong": {"tools": 5, "approvals": {"a": 1}, "calls": "x", "keys": [1], "tenants": [[]]},
    "a list": [1, 2],
    "nothing": None,
    "a word": "x",
    "pages without end": {**NO_END, "next": "same", "people": [], "total": 0},
    "a cursor that is none": {**NO_END, "next": {"a": 1}},
    "odd details": {
        "ok": False,
        "status": "pending_approval",
        "error": {"code": "x", "message": "m", "details": {"where": "str"}},
    },
}


@pytest.mark.parametrize("what", ODD)
def test_an_answer_of_another_shape_ends_in_a_sentence(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hostile(monkeypatch, 200, ODD[what]):
        told = {one: _ran(*one, "--json") for one in COMMANDS}
    for command, one in told.items():
        assert one.exception is None or isinstance(one.exception, SystemExit), (command, one)
        assert one.exit_code in {0, 1}, command
    if what in {"a list", "nothing", "pages without end"}:
        said = told["tenants", "list"]
        assert (said.exit_code, as_json(said)["error"]["code"]) == (1, "server_unreachable")
