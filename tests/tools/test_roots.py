"""The roots: how they are named, and what the house keeps for itself, wherever links lead."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.tools.means import means
from toolgate.errors import ToolError
from toolgate.settings.settings import Tools
from toolgate.tools.system import beneath, kept
from toolgate.tools.system import roots as room
from toolgate.tools.system.listing import Wanted, listed
from toolgate.tools.system.replacing import replace, version
from toolgate.tools.system.roots import Roots

pytestmark = pytest.mark.req("T4")
FLIPS = int(os.environ.get("TOOLGATE_LINK_FLIPS", "2000"))
SECRET = b"the secret outside"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A house in its own root, with a store, settings and tools; and a second root."""
    (tmp_path / ".toolgate").mkdir()
    (tmp_path / ".toolgate" / "store.db").write_bytes(SECRET)
    (tmp_path / "toolgate.toml").write_text("[tools]\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_bytes(b"a note")
    return tmp_path


def roots(house: Path, *names: str, **parts: Any) -> Roots:
    given = {
        "hidden": (house / ".toolgate",),
        "protected": (house / "toolgate.toml", house / "tools", house / "policy" / "main.rego"),
    }
    return Roots.of(means(house, settings=Tools(roots=names or (".",)), **given | parts))


def write(place: Roots, path: str, content: bytes = b"written") -> None:
    with place.writing(path) as spot:
        replace(spot, content, over=version(spot))


def test_a_path_begins_at_the_first_root_or_with_the_name_of_one(
    tmp_path_factory: pytest.TempPathFactory, house: Path
) -> None:
    other = tmp_path_factory.mktemp("shared")
    (other / "b.txt").write_bytes(b"elsewhere")
    (house / "notes" / "notes").mkdir()
    place = roots(house, "notes", str(other))
    assert place.names == ["notes", other.name]
    assert place.read("a.txt") == place.read("notes/a.txt") == b"a note"
    assert place.read(f"{other.name}/b.txt") == b"elsewhere"
    write(place, "notes/notes/c.txt")
    assert (house / "notes" / "notes" / "c.txt").exists()
    with place.reading("notes/notes/c.txt") as spot:
        assert place.read(spot.shown) == b"written"
    assert place.make_folders(f"{other.name}/x/y") == [f"{other.name}/x", f"{other.name}/x/y"]


def test_without_roots_nothing_is_open_and_the_machine_is_none(house: Path) -> None:
    for place in (roots(house, "/"), roots(house, "nowhere")):
        with pytest.raises(ToolError, match=r"tools\.roots"):
            place.read("etc/passwd")


def _ways_to_the_store(house: Path) -> list[str]:
    store = house / ".toolgate" / "store.db"
    (house / "link").symlink_to(".toolgate/store.db")
    (house / "folder").symlink_to(".toolgate")
    (house / "notes" / "up").symlink_to("../.toolgate")
    (house / "hard.db").hardlink_to(store)
    return [".toolgate/store.db", "link", "folder/store.db", "notes/up/store.db", "hard.db"]


def test_what_is_hidden_is_read_by_no_way(house: Path) -> None:
    ways = _ways_to_the_store(house)
    place = roots(house)
    for path in ways:
        with pytest.raises(ToolError, match="kept by toolgate"):
            place.read(path)
        with pytest.raises(ToolError):
            write(place, path)
    with pytest.raises(ToolError):
        listed(place, "folder", Wanted())
    names = [entry["path"] for entry in listed(place, ".", Wanted(depth=4))["entries"]]
    assert "notes/a.txt" in names
    assert not [name for name in names if name.startswith(".toolgate") or name == "hard.db"]
    assert place.read("notes/a.txt") == b"a note"
    # The guard-off control.
    open_house = roots(house, hidden=())
    assert [open_house.read(path) for path in ways] == [SECRET] * len(ways)


def test_a_store_beside_the_settings_is_hidden_with_its_journals(house: Path) -> None:
    for name in ("own.db", "own.db-wal", "own.db-journal", "own.dbx"):
        (house / name).write_bytes(SECRET)
    place = roots(house, hidden=(house / "own.db",))
    for name in ("own.db", "own.db-wal", "own.db-journal", "own.db-shm"):
        with pytest.raises(ToolError, match="kept by toolgate"):
            place.read(name)
    assert place.read("own.dbx") == SECRET


def test_what_is_protected_is_read_and_never_written_though_it_is_not_there_yet(
    house: Path,
) -> None:
    (house / "link").symlink_to("toolgate.toml")
    (house / "later").symlink_to("tools")
    (house / "policy").mkdir()
    place = roots(house)
    assert place.read("toolgate.toml") == place.read("link") == b"[tools]\n"
    refused = [
        "toolgate.toml", "link", "TOOLGATE.TOML", "./notes/.././toolgate.toml", "tools",
        "policy/main.rego", "policy/MAIN.rego", "later",
    ]  # fmt: skip
    for path in refused:
        with pytest.raises(ToolError):
            write(place, path)
    for folder in ("tools", "Tools", "tools/deep", ".toolgate/x", "later"):
        with pytest.raises(ToolError):
            place.make_folders(folder)
    assert not (house / "tools").exists()
    write(place, "policy/other.txt")
    # The guard-off control.
    write(roots(house, protected=()), "toolgate.toml", b"changed")
    assert place.read("toolgate.toml") == b"changed"


def test_no_folder_is_put_where_something_protected_would_be_in_it(house: Path) -> None:
    place = roots(house)
    with place.founding("fresh") as spot:
        assert spot.name == "fresh"
    for path in ("policy", "Policy", "tools", "notes"):
        with pytest.raises(ToolError), place.founding(path):
            pass


def test_a_second_name_of_a_protected_file_does_not_change_it(house: Path) -> None:
    (house / "copy.toml").hardlink_to(house / "toolgate.toml")
    with pytest.raises(ToolError):
        write(roots(house), "copy.toml", b"changed")
    assert (house / "toolgate.toml").read_bytes() == b"[tools]\n"


def test_where_the_system_has_no_openat2_no_link_is_followed(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (house / "notes" / "inside").symlink_to("a.txt")
    (house / "way").symlink_to("notes")
    place = roots(house)
    assert place.read("notes/inside") == place.read("way/a.txt") == b"a note"
    for module in (beneath, room):
        monkeypatch.setattr(module, "has_openat2", lambda: False)
    assert place.read("notes/a.txt") == b"a note"
    write(place, "notes/b.txt")
    for path in ("notes/inside", "way/a.txt", ".toolgate/store.db"):
        with pytest.raises(ToolError):
            place.read(path)


def test_the_house_climbs_to_the_top_of_the_machine() -> None:
    held = os.open("/", os.O_PATH)
    assert len(kept.ancestors(held)) == 1
    os.close(held)


def _flip(house: Path, stop: threading.Event, count: list[int]) -> None:
    """A folder and a link that leads out take each other's name, again and again."""
    root = house / "notes"
    spare = root / "spare"
    spare.symlink_to("../outside")
    while not stop.is_set():
        for one, other in ((root / "inner", root / "kept"), (spare, root / "inner")):
            one.rename(other)
        for one, other in ((root / "inner", spare), (root / "kept", root / "inner")):
            one.rename(other)
        count[0] += 2


def test_links_that_flip_while_files_are_read_and_written_lead_nobody_out(house: Path) -> None:
    outer, inner = house / "outside", house / "notes" / "inner"
    for folder, content in ((outer, SECRET), (inner, b"inside")):
        folder.mkdir()
        (folder / "file.txt").write_bytes(content)
    place = roots(house, "notes")
    stop, count, read = threading.Event(), [0], 0
    thread = threading.Thread(target=_flip, args=(house, stop, count))
    thread.start()
    try:
        while count[0] < FLIPS or not read:
            try:
                assert place.read("inner/file.txt") == b"inside"
                read += 1
                write(place, "inner/written.txt", b"mine")
                assert not listed(place, "inner", Wanted(glob="secret*"))["entries"]
            except ToolError:
                continue
    finally:
        stop.set()
        thread.join()
    assert [one.name for one in outer.iterdir()] == ["file.txt"]
    assert (outer / "file.txt").read_bytes() == SECRET
    # The guard-off control: whoever goes by names alone is led out.
    if inner.is_symlink():
        inner.unlink()
    else:
        inner.rename(house / "notes" / "gone")
    inner.symlink_to("../outside")
    assert (inner / "file.txt").read_bytes() == SECRET
    with pytest.raises(ToolError, match="leads out"):
        place.read("inner/file.txt")
