"""No path leads out of the roots, however it is written."""

import itertools
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.tools.means import means
from tests.tools.paths import UNFIT, leading_out
from toolgate.errors import ToolError
from toolgate.settings.settings import Tools
from toolgate.tools.system import roots as room
from toolgate.tools.system.replacing import replace, version
from toolgate.tools.system.roots import Roots

pytestmark = pytest.mark.req("T4")
DATA = Path(__file__).parents[3] / "shared" / "data" / "security" / "path_traversal.json"
SECRET = b"the secret outside"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A root with a note in it, and secrets around it."""
    files = tmp_path / "files"
    (files / "folder").mkdir(parents=True)
    (files / "note.txt").write_bytes(b"a note")
    (files / "folder" / "note.txt").write_bytes(b"a note")
    (tmp_path / "files-more").mkdir()
    (tmp_path / "files-more" / "sibling.txt").write_bytes(SECRET)
    (tmp_path / "outside.txt").write_bytes(SECRET)
    return tmp_path


def roots(house: Path, **parts: Any) -> Roots:
    return Roots.of(means(house, settings=Tools(roots=("files",)), **parts))


def write(place: Roots, path: str, content: bytes = b"written") -> None:
    with place.writing(path) as spot:
        replace(spot, content, over=version(spot))


def outside(house: Path) -> dict[str, bytes]:
    """All that is beside the root, and what is in it."""
    return {
        str(path.relative_to(house)): path.read_bytes()
        for path in house.rglob("*")
        if path.is_file() and not path.is_relative_to(house / "files")
    }


def test_there_are_enough_of_them() -> None:
    assert len({*leading_out(), *UNFIT}) >= 250


def test_paths_that_lead_out_are_refused_for_reading_writing_and_making(house: Path) -> None:
    place, before = roots(house), outside(house)
    assert place.read("note.txt") == place.read("./folder//note.txt") == b"a note"
    for path in leading_out():
        with pytest.raises(ToolError):
            place.read(path)
        with pytest.raises(ToolError):
            write(place, path)
        with pytest.raises(ToolError):
            place.make_folders(f"{path}/made")
        with pytest.raises(ToolError):
            place.location(path)
    assert outside(house) == before
    assert {one.name for one in (house / "files").iterdir()} == {"folder", "note.txt"}


@pytest.mark.parametrize("path", UNFIT)
def test_names_that_others_read_as_something_else_are_not_given(house: Path, path: str) -> None:
    place = roots(house)
    with pytest.raises(ToolError):
        write(place, path)
    with pytest.raises(ToolError):
        place.make_folders(path)
    with pytest.raises(ToolError):
        place.read(path)


@pytest.mark.parametrize(
    "path",
    ["note.txt", "folder/new.txt", "a b.txt", "日本.txt", ".hidden", "x..y", "50%.txt", "c++"],
)
def test_other_names_are_fine(house: Path, path: str) -> None:
    place = roots(house)
    write(place, path, b"fine")
    assert place.read(path) == place.read(f"files/{path}") == b"fine"
    assert (house / "files" / path).read_bytes() == b"fine"


def _published() -> list[str]:
    if not DATA.exists():
        pytest.skip("skipped: no ../shared/data beside this checkout")
    return [item["path"] for item in json.loads(DATA.read_text("utf-8"))["items"]]


def _decoded(path: str) -> Generator[str]:
    yield path
    yield unquote(path, errors="surrogateescape")
    yield unquote(unquote(path, errors="surrogateescape"), errors="surrogateescape")


def test_published_paths_read_nothing_and_write_nothing_outside(house: Path) -> None:
    place, before = roots(house), outside(house)
    paths = dict.fromkeys(itertools.chain.from_iterable(map(_decoded, _published())))
    assert len(paths) > 1_000
    for path in paths:
        with pytest.raises(ToolError):
            place.read(path)
    for path in paths:
        # What is written after all is a file in the root, by a name that says nothing else.
        try:
            write(place, path)
        except ToolError:
            continue
        assert (house / "files" / path).read_bytes() == b"written"
    assert outside(house) == before


def _followed(base: int, path: str) -> tuple[int, str]:
    above, name = os.path.split(path)
    return os.open(above or ".", os.O_RDONLY, dir_fd=base), name


def test_each_guard_is_what_keeps_them_in(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard-off control: without any of them, a path leads out; one alone keeps it in."""
    place = roots(house)
    monkeypatch.setattr(room, "parts_of", _split)
    with pytest.raises(ToolError):
        place.read("../outside.txt")
    monkeypatch.setattr(room, "_resolved", _followed)
    with pytest.raises(ToolError):
        place.read("../outside.txt")
    monkeypatch.setattr(room, "ancestors", _everything)
    assert place.read("../outside.txt") == SECRET


def _split(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))


def _everything(_folder: int) -> object:
    return _Everything()


class _Everything(list[object]):
    def __contains__(self, _one: object) -> bool:
        return True
