"""What a worker reads of archives: all of what is good, and no more than it may."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.bent import info, twice
from tests.tools.packing import WAYS, packed, tar_of, zipped
from toolgate.errors import ToolError
from toolgate.tools.archive import entry, limits, tars, work
from toolgate.tools.archive.formats import reader

pytestmark = pytest.mark.req("T1", "T4")


def outcome(data: bytes, most: int = 700) -> dict[str, bytes]:
    """What a worker would give of an archive, without one."""
    told = work.manifest(data)
    if told["problems"]:
        raise ToolError(str(told["problems"]))
    places = list(range(len(told["entries"])))
    found = {e["name"].removeprefix("./"): b"" for e in told["entries"] if e["kind"] == "file"}
    begin, is_all = 0, False
    while not is_all:
        window = work.window(data, places, begin, most)
        at = 0
        for place, size in window.value["pieces"]:
            piece = window.content[at : at + size]
            found[told["entries"][place]["name"].removeprefix("./")] += piece
            at += size
        begin += at
        is_all = window.value["is_all"]
    return found


NAMES = st.text("abcXYZ019_-é日 .", min_size=1, max_size=12).filter(
    lambda name: name == name.strip() and not name.endswith(".") and set(name) != {"."}
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
FILES = st.dictionaries(PATHS, st.binary(max_size=2_000), min_size=1, max_size=6)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(files=FILES)
def test_an_archive_comes_out_as_it_went_in(way: str, files: dict[str, bytes]) -> None:
    entries = [entry.Entry(name=name, kind="file", size=0) for name in files]
    data = WAYS[way](files)
    if entry.problems(entries, len(data)):
        with pytest.raises(ToolError):
            outcome(data)
        return
    assert outcome(data) == files


def test_without_the_look_at_its_entries_it_would_be_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard-off control: it is the names and kinds that keep them out."""
    slips = zipped({"../slipped.txt": b"out"})
    with pytest.raises(ToolError):
        outcome(slips)
    monkeypatch.setattr(work, "problems", _no_problems)
    assert outcome(slips) == {"../slipped.txt": b"out"}
    assert outcome(twice("a.txt", "A.TXT")) == {"a.txt": b"1", "A.TXT": b"2"}


def _no_problems(_entries: object, _size: int) -> list[entry.Problem]:
    return []


@pytest.mark.parametrize("way", [way for way in WAYS if way != "tar"])
def test_zeros_are_stopped_while_they_come(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FREE", 1_000_000), ("UNPACKED", 2_000_000)):
        monkeypatch.setattr(limits, name, value)
    small = WAYS[way]({"zeros": bytes(900_000)})
    assert outcome(small, 1_000_000) == {"zeros": bytes(900_000)}
    bomb = WAYS[way]({"zeros": bytes(3_000_000)})
    with pytest.raises(ToolError, match="more than it may"):
        outcome(bomb, 1_000_000)
    # What it says of itself does not count: nothing is looked at before.
    with pytest.raises(ToolError, match="more than it may"):
        work.window(bomb, [0], 0, 10_000_000)


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zst"])
def test_notes_without_end_are_stopped_too(packing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FREE", 1_000_000), ("UNPACKED", 2_000_000)):
        monkeypatch.setattr(limits, name, value)
    monkeypatch.setattr(tars, "_OVERHEAD", 100_000)
    notes = info("a", pax_headers={"comment": "0" * 3_000_000})
    with pytest.raises(ToolError, match="more than it may"):
        outcome(packed(tar_of([(notes, b"")]), packing))


def test_an_archive_in_an_archive_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = zipped({"zeros": bytes(9_000_000)})
    assert outcome(zipped({f"{n}.zip": inner for n in range(9)}), 100_000) == {
        f"{n}.zip": inner for n in range(9)
    }
    assert reader(inner).format == "zip"
