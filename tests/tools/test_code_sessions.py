"""Files that code leaves for the next call of its session, and for nobody else."""

from base64 import b64decode
from collections.abc import AsyncGenerator
from io import BytesIO
from typing import Any

import pytest
import pytest_asyncio
from PIL import Image

from toolgate import Caller, Toolgate
from toolgate.settings.settings import Settings
from toolgate.shelf import Place
from toolgate.testing.shelf import MemoryShelf
from toolgate.tools.code import session as room
from toolgate.tools.code.session import Session, pruned, whose

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("T3", "V3")]
ANN = Caller(tenant="acme", agent="clerk", user="ann", session="s-1")
OTHERS = {
    "another tenant": Caller(tenant="bravo", agent="clerk", user="ann", session="s-1"),
    "another agent": Caller(tenant="acme", agent="cook", user="ann", session="s-1"),
    "another user": Caller(tenant="acme", agent="clerk", user="bob", session="s-1"),
    "another session": Caller(tenant="acme", agent="clerk", user="ann", session="s-2"),
    "no session": Caller(tenant="acme", agent="clerk", user="ann"),
}
WRITE = "open('secret.txt', 'w').write('the first number is 7')"
LOOK = "import os\nprint([(n, open(n).read()) for n in sorted(os.listdir('.'))])"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Toolgate]:
    settings = Settings.model_validate(
        {"root": tmp_path_factory.mktemp("sessions"), "approvals": {"mode": "never"}}
    )
    async with Toolgate.open(settings) as found:
        yield found


async def run(gate: Toolgate, code: str, caller: Caller) -> dict[str, Any]:
    output = await gate.call("code_execute", {"code": code}, caller=caller)
    assert output.ok, output
    return output.data


async def test_a_session_finds_its_files_again_and_no_other_does(gate: Toolgate) -> None:
    assert (await run(gate, WRITE, ANN))["session_files"] == ["secret.txt"]
    again = await run(gate, LOOK, ANN)
    assert "the first number is 7" in again["stdout"]
    assert again["files"] == []
    for who, caller in OTHERS.items():
        assert (await run(gate, LOOK, caller))["stdout"] == "[]\n", who


async def test_a_figure_comes_back_as_a_picture(gate: Toolgate) -> None:
    code = (
        "import matplotlib.pyplot as plt\n"
        "plt.plot([1, 4, 9], color='red')\n"
        "plt.savefig('squares.png')\n"
    )
    (file,) = (await run(gate, code, OTHERS["no session"]))["files"]
    assert (file["path"], file["media_type"]) == ("squares.png", "image/png")
    with Image.open(BytesIO(b64decode(file["content"]))) as picture:
        colours = picture.convert("RGB").getcolors(maxcolors=1 << 20) or []
    assert picture.size == (640, 480)
    assert {(255, 255, 255), (255, 0, 0), (0, 0, 0)} <= {colour for _, colour in colours}


async def test_without_whose_it_is_others_would_find_them(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def anybodys(_caller: Caller) -> tuple[Place, Place, str]:
        return whose(ANN)

    await run(gate, WRITE, ANN)
    monkeypatch.setattr(room, "whose", anybodys)
    for caller in OTHERS.values():
        assert "the first number is 7" in (await run(gate, LOOK, caller))["stdout"]


async def test_no_other_tool_reads_them(gate: Toolgate) -> None:
    await run(gate, WRITE, ANN)
    listed = await gate.call("list_directory", {"depth": 5, "path": "."}, caller=ANN)
    assert "secret.txt" not in listed.to_human()


async def test_files_are_changed_and_removed_like_files(gate: Toolgate) -> None:
    caller = Caller(tenant="acme", agent="clerk", session="s-3")
    await run(
        gate, "import os\nos.makedirs('a/b')\nn = open('a/b/c.py', 'w').write('x = 1')", caller
    )
    changed = await run(gate, "import a.b.c\nn = open('a/b/c.py', 'w').write('x = 2')", caller)
    assert [(one["path"], one["change"]) for one in changed["files"]] == [("a/b/c.py", "changed")]
    assert (await run(gate, "from a.b.c import x\nx", caller))["value"] == "2"
    gone = await run(gate, "import os\nos.remove('a/b/c.py')", caller)
    assert gone["files"] == [{"path": "a/b/c.py", "change": "removed"}]
    assert gone["session_files"] == []


async def test_a_large_file_is_read_by_its_reference_by_its_owner_only(gate: Toolgate) -> None:
    made = await run(gate, "n = open('t.txt', 'w').write('0123456789' * 9_000)", ANN)
    asked = {"reference": made["files"][0]["reference"], "length": 10}
    assert (await gate.call("read_output", asked, caller=ANN)).data["text"] == "0123456789"
    other = await gate.call("read_output", asked, caller=OTHERS["another tenant"])
    assert other.error is not None


async def test_what_is_too_much_is_not_kept_and_said_so(gate: Toolgate) -> None:
    caller = Caller(tenant="acme", agent="clerk", session="s-4")
    code = "for n in range(3):\n    m = open(f'{n}', 'wb').write(bytes(3_000_000))"
    made = await run(gate, code, caller)
    assert made["session_files"] == ["0", "1"]
    [left_out] = made["left_out"]
    assert (left_out["path"], left_out["why"][:18]) == ("2", "No more than 8 MB ")
    more = await run(gate, "m = open('3', 'wb').write(bytes(2_000_000))", caller)
    assert more["session_files"] == ["0", "1", "3"]


HARVEST = "for n in range(64):\n    m = open(f'{n:02}', 'w').write('x')"
GROWTH = "m = open('notes.txt', 'ab').write(bytes(5_000_000))"
ODD = """import os
os.mkdir("d" * 200)
for name in (b"\\xff", b"fine", b"d" * 200 + b"/" + b"e" * 200):
    open(name, "w").close()
"""
CROWD = "for n in range(400):\n    m = open(f'a{n:03}', 'w').close()"


@pytest.mark.parametrize("code", [HARVEST, GROWTH, CROWD], ids=["many", "large", "a crowd"])
async def test_what_there_is_no_room_for_is_not_removed(gate: Toolgate, code: str) -> None:
    caller = Caller(tenant="acme", agent="clerk", session=f"s-{code}"[:60])
    await run(gate, "n = open('notes.txt', 'w').write('remember me')", caller)
    made = await run(gate, code, caller)
    assert "removed" not in {one["change"] for one in made["files"]}
    assert "notes.txt" in made["session_files"]
    assert len(made["session_files"]) <= 64
    assert made["left_out"]
    assert "left_out" in made["note"]
    again = await run(gate, "print(open('notes.txt').read())", caller)
    assert again["stdout"] == "remember me\n"


async def test_what_grew_too_large_is_named_and_stays_as_it_was(gate: Toolgate) -> None:
    caller = Caller(tenant="acme", agent="clerk", session="s-5")
    await run(gate, "n = open('notes.txt', 'w').write('remember me')", caller)
    assert (await run(gate, GROWTH, caller))["left_out"] == [
        {
            "path": "notes.txt",
            "why": "It has more than 4 MB. The session has it as it was before this call.",
        }
    ]
    gone = await run(gate, "import os\nos.remove('notes.txt')", caller)
    assert gone["files"] == [{"path": "notes.txt", "change": "removed"}]
    assert gone["session_files"] == []


async def test_what_shrinks_makes_room_for_what_grows(gate: Toolgate) -> None:
    caller = Caller(tenant="acme", agent="clerk", session="s-6")
    write = "for name, size in {}.items():\n    n = open(name, 'wb').write(bytes(size))"
    before, after = {"a": 10**6, "b": 4 * 10**6, "c": 3 * 10**6}, {"a": 4 * 10**6, "b": 0}
    await run(gate, write.format(before), caller)
    made = await run(gate, write.format(after), caller)
    assert "left_out" not in made
    assert {one["path"]: one["size"] for one in made["files"]} == after


async def test_a_name_that_cannot_be_kept_is_left_out(gate: Toolgate) -> None:
    caller = Caller(tenant="acme", agent="clerk", session="s-7")
    made = await run(gate, ODD, caller)
    assert made["session_files"] == ["fine"]
    assert ["Its path" in one["why"] for one in made["left_out"]] == [True, True]


async def test_two_calls_at_once_keep_what_both_have_made() -> None:
    shelf = MemoryShelf()
    one, two = Session(shelf, ANN), Session(shelf, ANN)
    assert await one.files() == await two.files() == {}
    assert await one.keep({"a": b"1", "both": b"1"}, ())
    assert await two.keep({"b": b"2", "both": b"2"}, ())
    assert await Session(shelf, ANN).files() == {"a": b"1", "b": b"2", "both": b"2"}
    # Nothing is left of what was replaced.
    assert await shelf.count(whose(ANN)[1]) == 3


async def test_a_file_and_a_folder_of_one_name_do_not_end_a_session(
    gate: Toolgate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_odds(_session: Session) -> dict[str, bytes]:
        return {"a": b"1", "a/b": b"2", "c": b"3"}

    monkeypatch.setattr(Session, "files", at_odds)
    assert (await run(gate, LOOK, ANN))["session_files"] == ["a", "c"]


async def test_where_there_is_no_room_all_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_BYTES", 10)
    shelf = MemoryShelf()
    assert await Session(shelf, ANN).keep({"a": b"12345"}, ())
    assert not await Session(shelf, ANN).keep({"b": b"123456"}, ())
    assert await Session(shelf, ANN).files() == {"a": b"12345"}
    assert await shelf.count(whose(ANN)[1]) == 1


async def test_the_oldest_of_too_many_sessions_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_SESSIONS", 3)
    shelf = MemoryShelf()
    callers = [Caller(tenant="acme", agent="clerk", session=f"s-{n}") for n in range(5)]
    for caller in callers:
        assert await Session(shelf, caller).keep({"a": caller.session.encode()}, ())
    kept = [await Session(shelf, caller).files() for caller in callers]
    assert kept == [{}, {}, {"a": b"s-2"}, {"a": b"s-3"}, {"a": b"s-4"}]
    assert await shelf.count(whose(callers[0])[1]) == 3


async def test_a_session_that_nobody_has_touched_for_days_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf = MemoryShelf()
    assert await Session(shelf, ANN).keep({"a": b"1"}, ())
    notes, contents, key = whose(ANN)
    assert await pruned(shelf, notes) == []
    monkeypatch.setattr(room, "KEPT_DAYS", -1)
    assert await pruned(shelf, notes) == [key]
    assert await shelf.count(notes) == await shelf.count(contents) == 0
