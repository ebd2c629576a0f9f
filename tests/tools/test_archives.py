"""Archives come out as they went in; what is bent is refused as a whole and leaves nothing."""

import asyncio
import base64
import json
import zlib
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.house import until
from tests.tools.bent import BENT, info, million
from tests.tools.packing import WAYS, tar_of, tarred
from toolgate import Caller, Toolgate
from toolgate.errors import ToolError
from toolgate.settings.settings import Settings
from toolgate.tools.archive.asking import Asked
from toolgate.tools.archive.limits import ARCHIVE
from toolgate.tools.archive.unpacking import Unpacking

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("T1", "T4")]
DATA = Path(__file__).parents[3] / "shared" / "data" / "security" / "archives.json"
ME = Caller(tenant="acme", agent="clerk")


class House:
    """A gate, and the folder that its tools may touch."""

    def __init__(self, gate: Toolgate, root: Path) -> None:
        self.gate = gate
        self.files = root / "files"
        self.root = root

    async def ask(self, tool: str, **args: Any) -> dict[str, Any]:
        found = await self.gate.call(tool, args, caller=ME)
        if found.error is not None:
            raise ToolError(found.error.message)
        return {**found.data, "call_id": found.call_id}

    def everything(self) -> dict[str, bytes | None]:
        """All that is on the disk, but for the house's own."""
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None
            for path in self.root.rglob("*")
            if not path.is_relative_to(self.root / ".toolgate")
        }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[House]:
    root = tmp_path_factory.mktemp("house")
    (root / "files").mkdir()
    given = {"root": root, "tools": {"roots": ["files"]}, "approvals": {"mode": "never"}}
    async with Toolgate.open(Settings.model_validate(given)) as gate:
        yield House(gate, root)


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_unpacked_is_what_was_packed_and_is_taken_back(
    house: House, way: str
) -> None:
    files = {"a/b/deep.txt": b"deep", "top.bin": bytes(range(256)) * 1_000, "a/empty": b""}
    (house.files / f"x.{way}").write_bytes(WAYS[way](files))
    before = house.everything()
    done = await house.ask("archive_extract", path=f"x.{way}", to="out")
    out = house.files / "out"
    found = {str(one.relative_to(out)): one.read_bytes() for one in out.rglob("*") if one.is_file()}
    assert found == files
    (out / "a" / "added.txt").write_text("a person's own")
    report = await house.gate.undo(call_id=done["call_id"], caller=ME)
    assert report.items[0].result == "failed"
    (out / "a" / "added.txt").unlink()
    report = await house.gate.undo(call_id=done["call_id"], caller=ME)
    assert report.items[0].result == "undone"
    assert house.everything() == before


async def test_an_archive_larger_than_a_window_comes_whole(house: House) -> None:
    content = b"0123456" * 1_300_000
    (house.files / "big.tar").write_bytes(tar_of([(info("big.bin", len(content)), content)]))
    await house.ask("archive_extract", path="big.tar", to="big")
    assert (house.files / "big" / "big.bin").read_bytes() == content


async def test_whoever_stops_waiting_leaves_nothing_half_unpacked(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (house.files / "x.zip").write_bytes(WAYS["zip"]({f"{n}.txt": b"content" for n in range(50)}))
    before = house.everything()
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()
    write = Unpacking.write

    def writes(self: Unpacking, piece: bytes) -> None:
        loop.call_soon_threadsafe(reached.set)
        write(self, piece)

    monkeypatch.setattr(Unpacking, "write", writes)
    asked = asyncio.ensure_future(house.ask("archive_extract", path="x.zip", to="half"))
    await reached.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await until(lambda: house.everything() == before)


@pytest.mark.parametrize("name", [".git/config", "a/.GIT/hooks/post-checkout", "fine/.git"])
async def test_what_belongs_to_git_is_not_unpacked(house: House, name: str) -> None:
    (house.files / "gits").write_bytes(tarred({"fine.txt": b"1", name: b"[core]"}))
    before = house.everything()
    with pytest.raises(ToolError, match="belongs to git"):
        await house.ask("archive_extract", path="gits", to="repo")
    assert house.everything() == before
    # All the rest of it can be had.
    found = await house.ask("archive_extract", path="gits", to="repo", members=["fine.txt"])
    assert found["extracted"] == ["fine.txt"]
    await house.gate.undo(caller=ME, call_id=found["call_id"])


async def test_no_repository_is_unpacked_under_another_name(house: House) -> None:
    bare = {"lib/HEAD": b"ref: refs/heads/main", "lib/objects/a": b"", "lib/refs/a": b""}
    (house.files / "bare").write_bytes(tarred({**bare, "docs/HEAD/a.md": b"1"}))
    before = house.everything()
    with pytest.raises(ToolError, match="take a folder for a repository"):
        await house.ask("archive_extract", path="bare", to="repo")
    assert house.everything() == before
    found = await house.ask("archive_extract", path="bare", to="repo", members=["docs"])
    assert found["extracted"] == ["docs/HEAD/a.md"]
    await house.gate.undo(caller=ME, call_id=found["call_id"])


async def test_names_that_nothing_may_be_called_are_told_in_plain_letters(house: House) -> None:
    for kind, name in (("a name that is no text", "caf?"), ("a byte of zero", "slipped.txt?png")):
        (house.files / "bent").write_bytes(BENT[kind]())
        told = await house.ask("archive_open", path="bent")
        assert not told["extractable"]
        assert [entry["path"] for entry in told["entries"]] == [name]


@pytest.mark.parametrize("kind", BENT)
async def test_a_bent_archive_is_refused_and_nothing_is_left(house: House, kind: str) -> None:
    (house.files / "bent").write_bytes(BENT[kind]())
    before = house.everything()
    with pytest.raises(ToolError):
        await house.ask("archive_extract", path="bent", to="never")
    assert house.everything() == before


async def test_links_and_programs_of_others_in_a_7z_are_known_as_such(house: House) -> None:
    for kind, why in (("a link in a 7z", "it is a link"), ("set-uid in a 7z", "set-uid")):
        (house.files / "bent").write_bytes(BENT[kind]())
        with pytest.raises(ToolError, match=why):
            await house.ask("archive_extract", path="bent", to="never")


async def test_without_the_guard_a_file_would_land_outside(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = Asked.about

    async def trusting(self: Asked, verb: str, **args: Any) -> dict[str, Any]:
        nothing: dict[str, Any] = {"problems": []}
        return await about(self, verb, **args) | nothing

    (house.files / "bent").write_bytes(BENT["zip-slip, deep"]())
    before = house.everything()
    monkeypatch.setattr(Asked, "about", trusting)
    done = await house.ask("archive_extract", path="bent", to="never")
    assert house.everything().keys() - before.keys() >= {"slipped.txt"}
    (house.root / "slipped.txt").unlink()
    await house.gate.undo(call_id=done["call_id"], caller=ME)
    assert house.everything() == before


async def test_a_million_entries_are_refused_where_there_are_too_many(house: House) -> None:
    bomb = million()
    assert len(bomb) < ARCHIVE
    # It is as large as it is said to be.
    unpacked = sum(map(len, _pieces(bomb)))
    assert unpacked == 512 * 1_000_000
    (house.files / "million").write_bytes(bomb)
    before = house.everything()
    for tool in ("archive_open", "archive_extract"):
        with pytest.raises(ToolError, match="more than 10,000 entries"):
            await house.ask(tool, path="million")
    assert house.everything() == before


def _pieces(bomb: bytes) -> Iterator[bytes]:
    flow, left = zlib.decompressobj(-15), bomb[10:-8]
    while left:
        yield flow.decompress(left, 4_000_000)
        left = flow.unconsumed_tail


async def test_published_archives_are_refused_or_bounded(house: House) -> None:
    if not DATA.exists():
        pytest.skip("skipped: no ../shared/data beside this checkout")
    outcomes: dict[str, str] = {}
    for item in json.loads(DATA.read_text("utf-8"))["items"]:
        (house.files / "published").write_bytes(base64.b64decode(item["base64"]))
        before = house.everything()
        try:
            done = await house.ask("archive_extract", path="published", to="published-out")
        except ToolError:
            outcomes[item["name"]] = "refused"
        else:
            outcomes[item["name"]] = f"{done['files']} files, {done['bytes']} bytes"
            await house.gate.undo(call_id=done["call_id"], caller=ME)
        assert house.everything() == before
    assert outcomes == {
        "r.gz": "refused",
        "directory-traversal.zip": "refused",
        # It holds itself, once, as a file.
        "r.zip": "1 files, 440 bytes",
        "max-length.zip": "0 files, 0 bytes",
        "42-password-42.zip": "refused",
    }
