"""A write is whole or not at all, and what it replaced comes back, through the whole house."""

import asyncio
import os
import stat
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.means import means
from toolgate import Caller, Toolgate, Turn
from toolgate.call import Output
from toolgate.errors import ToolError
from toolgate.settings.settings import Settings, Tools
from toolgate.testing.shelf import MemoryShelf
from toolgate.tools.system import backups, replacing
from toolgate.tools.system.backups import Backup, Backups, Before
from toolgate.tools.system.replacing import remove, replace, version
from toolgate.tools.system.roots import Roots

pytestmark = pytest.mark.req("T1", "T4")
ME = Caller(tenant="acme", agent="clerk")
OTHER = Caller(tenant="acme", agent="other")


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    """A house whose tools may touch `files`."""
    (tmp_path / "files").mkdir()
    settings = {"root": tmp_path, "tools": {"roots": ["files"]}, "approvals": {"mode": "never"}}
    async with Toolgate.open(Settings.model_validate(settings)) as house:
        yield house


async def written(gate: Toolgate, turn: Turn | None = None, **args: Any) -> Output:
    found = await gate.call("write_file", args, caller=ME, turn=turn)
    assert found.ok, found
    return found


async def undone(gate: Toolgate, done: Output) -> str:
    report = await gate.undo(call_id=done.call_id, caller=ME)
    return report.items[0].result


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".toolgate-*")]


async def test_an_undo_brings_back_exactly_what_was_there(gate: Toolgate, tmp_path: Path) -> None:
    file = tmp_path / "files" / "a.bin"
    file.write_bytes(b"\x00\xff as it was \r\n" * 50_000)
    file.chmod(0o640)
    os.utime(file, ns=(1_000, 1_234_567_890_123_456_789))
    before = (file.read_bytes(), file.stat().st_mode, file.stat().st_mtime_ns)
    done = await written(gate, path="a.bin", content="new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert await undone(gate, done) == "undone"
    assert (file.read_bytes(), file.stat().st_mode, file.stat().st_mtime_ns) == before
    assert not leftovers(tmp_path)


async def test_an_undo_removes_what_was_new_with_the_folders_made_for_it(
    gate: Toolgate, tmp_path: Path
) -> None:
    done = await written(gate, path="a/b/new.txt", content="new", create_parents=True)
    other = await written(gate, path="a/other.txt", content="stays")
    assert await undone(gate, done) == "undone"
    assert not (tmp_path / "files" / "a" / "b").exists()
    assert (tmp_path / "files" / "a" / "other.txt").read_text() == "stays"
    assert await undone(gate, other) == "undone"


async def test_a_turn_of_writes_is_taken_back_in_reverse(gate: Toolgate, tmp_path: Path) -> None:
    file = tmp_path / "files" / "log.txt"
    file.write_text("first\n")
    turn = Turn(group="t-1")
    await written(gate, turn, path="log.txt", content="second\n", mode="append")
    await written(gate, turn, path="log.txt", content="all new\n")
    await written(gate, turn, path="log.txt", content="more\n", mode="append")
    assert file.read_text() == "all new\nmore\n"
    report = await gate.undo(turn_group="t-1", caller=ME)
    assert [item.result for item in report.items] == ["undone"] * 3
    assert file.read_text() == "first\n"


async def test_what_has_changed_since_is_left_as_it_is(gate: Toolgate, tmp_path: Path) -> None:
    file = tmp_path / "files" / "a.txt"
    done = await written(gate, path="a.txt", content="mine")
    file.write_text("a person's own words")
    assert await undone(gate, done) == "failed"
    assert file.read_text() == "a person's own words"
    file.write_text("mine")
    assert await undone(gate, done) == "undone"
    assert not file.exists()


async def test_a_backup_is_its_callers_alone(gate: Toolgate, tmp_path: Path) -> None:
    done = await written(gate, path="a.txt", content="mine")
    args = {"backup": done.data["backup"]}
    for thief in (OTHER, Caller(tenant="globex", agent="clerk")):
        refused = await gate.call("restore_file", args, caller=thief)
        assert refused.error is not None
        assert "no such backup" in refused.error.message
    assert (tmp_path / "files" / "a.txt").read_text() == "mine"
    for restored in (True, False):
        found = await gate.call("restore_file", args, caller=ME)
        assert found.data == {"path": "a.txt", "restored": restored, "exists": False, "size": None}


async def test_a_write_that_is_refused_leaves_no_folder(gate: Toolgate, tmp_path: Path) -> None:
    args = {"path": "x/y/NUL", "content": "", "create_parents": True}
    refused = await gate.call("write_file", args, caller=ME)
    assert refused.error is not None
    assert refused.error.code == "tool_error"
    assert list((tmp_path / "files").iterdir()) == []


async def test_what_is_too_large_to_be_kept_is_not_replaced(gate: Toolgate, tmp_path: Path) -> None:
    file = tmp_path / "files" / "large.bin"
    file.write_bytes(bytes(8_000_001))
    refused = await gate.call("write_file", {"path": "large.bin", "content": "x"}, caller=ME)
    assert refused.error is not None
    assert "write to a new file" in refused.error.message
    assert file.stat().st_size == 8_000_001


async def test_of_two_who_write_at_once_each_is_whole_and_none_is_lost(
    gate: Toolgate, tmp_path: Path
) -> None:
    lines = [f"line {number}\n" for number in range(20)]

    async def add(line: str) -> bool:
        args = {"path": "log.txt", "content": line, "mode": "append"}
        return (await gate.call("write_file", args, caller=ME)).ok

    told = await asyncio.gather(*map(add, lines))
    kept = (tmp_path / "files" / "log.txt").read_text().splitlines(keepends=True)
    assert sorted(kept) == sorted(line for line, ok in zip(lines, told, strict=True) if ok)
    assert kept


def place(root: Path) -> Roots:
    return Roots.of(means(root, settings=Tools(roots=(".",))))


@pytest.mark.parametrize("has_exchange", [True, False])
def test_what_changes_between_the_look_and_the_write_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_exchange: bool
) -> None:
    if not has_exchange:
        monkeypatch.setattr(replacing, "_renameat2", lambda: None)
    (tmp_path / "b.txt").write_text("seen")
    with place(tmp_path).writing("b.txt") as spot:
        replace(spot, b"mine", over=version(spot))
        found = version(spot)
        assert found is not None
        remove(spot, over=found)
    (tmp_path / "a.txt").write_text("seen")
    with place(tmp_path).writing("a.txt") as spot:
        over = version(spot)
        (tmp_path / "a.txt").write_text("changed meanwhile")
        with pytest.raises(ToolError, match="changed meanwhile"):
            replace(spot, b"mine", over=over)
        with pytest.raises(ToolError, match="changed meanwhile"):
            replace(spot, b"mine", over=None)
        (tmp_path / "a.txt").unlink()
        with pytest.raises(ToolError, match="changed meanwhile"):
            replace(spot, b"mine", over=over)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_sees_one_version_or_the_other_and_never_half(tmp_path: Path) -> None:
    file, versions = tmp_path / "a.txt", (b"a" * 100_000, b"b" * 90_000)
    file.write_bytes(versions[0])
    seen: set[bytes] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(file.read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(60):
        with place(tmp_path).writing("a.txt") as spot:
            replace(spot, versions[number % 2], over=version(spot))
    stop.set()
    thread.join()
    assert seen <= set(versions)
    assert not leftovers(tmp_path)


async def test_old_backups_go_and_there_is_an_end_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "_MOST", 3)
    shelf = MemoryShelf()
    kept = Backups(shelf, ME)
    one = Backup(path="a", before=Before(mode=0o644), after="")
    large = os.urandom(1_500_000)
    names = [await kept.keep(one, large) for _ in range(5)]
    assert [await kept.find(name) is not None for name in names] == [False, False, True, True, True]
    found = await kept.find(names[4])
    assert found == (one, large)
    monkeypatch.setattr(backups, "WINDOW", -1)
    await kept.keep(one, b"")
    assert [await kept.find(name) for name in names] == [None] * 5
    counts = [await shelf.count(place) for place in await shelf.places("file_backup")]
    assert counts == [1]
    assert await shelf.places("file_backup_content") == []


def repository(place: Path) -> None:
    """What git takes for the data of one."""
    for name in ("objects", "refs", "hooks"):
        (place / name).mkdir(parents=True)
    (place / "HEAD").write_text("ref: refs/heads/main\n")
    (place / "config").write_text("[core]\n")


@pytest.mark.parametrize(
    "path",
    [
        "repo/.git/config",
        "repo/way/config",
        "repo/way/hooks/post-commit",
        "repo/way/new/file",
        "repo/deep/post-commit",
        "repo/one",
        "linked/data/config",
        "bare.git/config",
        "bare.git/hooks/post-commit",
        "bare.git/new/file",
    ],
)
async def test_no_way_leads_into_what_git_goes_by(
    gate: Toolgate, tmp_path: Path, path: str
) -> None:
    files = tmp_path / "files"
    repository(files / "repo" / ".git")
    repository(files / "bare.git")
    (files / "linked" / "data").mkdir(parents=True)
    (files / "linked" / ".git").symlink_to("data")
    # A repository may bring such links.
    (files / "repo" / "way").symlink_to(".git")
    (files / "repo" / "deep").symlink_to(".git/hooks")
    (files / "repo" / "one").symlink_to(".git/config")
    before = {one: one.read_bytes() for one in files.rglob("*") if one.is_file()}
    args = {"path": path, "content": "[core]\n\tfsmonitor = id\n", "create_parents": True}
    found = await gate.call("write_file", args, caller=ME)
    assert "belongs to git" in str(found.error)
    assert {one: one.read_bytes() for one in files.rglob("*") if one.is_file()} == before
    assert not (files / "bare.git" / "new").exists()
    # Beside it everything is as in other folders.
    await written(gate, path="repo/src/config", content="1", create_parents=True)


async def test_no_folder_becomes_a_repository_file_by_file(gate: Toolgate, tmp_path: Path) -> None:
    files = tmp_path / "files"
    await written(gate, path="lib/objects/a", content="1", create_parents=True)
    await written(gate, path="lib/refs/a", content="1", create_parents=True)
    made = await gate.call("write_file", {"path": "lib/HEAD", "content": "ref: refs/a"}, caller=ME)
    assert "take a folder for a repository" in str(made.error)
    # Also where somebody else has put the first of them there.
    (files / "old").mkdir()
    (files / "old" / "HEAD").write_text("ref: refs/heads/main\n")
    for path in ("old/objects/a", "old/refs/a", "old/commondir"):
        args = {"path": path, "content": "../lib", "create_parents": True}
        found = await gate.call("write_file", args, caller=ME)
        assert "belongs to git" in str(found.error)
    assert [one.name for one in (files / "old").iterdir()] == ["HEAD"]
    await written(gate, path="old/notes.md", content="1")
    await written(gate, path="docs/HEAD/index.md", content="1", create_parents=True)
