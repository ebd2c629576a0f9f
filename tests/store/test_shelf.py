"""What tools keep: the same over every store, and in memory."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.store.conftest import TWIN, opened
from tests.store.places import PLACES
from toolgate.shelf import Place, Shelf, Thing
from toolgate.store.shelf import TableShelf
from toolgate.testing.shelf import MemoryShelf

NOTES = Place("acme", "notes", "clerk")


@pytest.fixture(params=(TWIN, *PLACES))
async def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Shelf]:
    """An empty one."""
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            yield MemoryShelf()
        else:
            yield TableShelf(await opened(request.param, tmp_path, request, stack))


def note(key: str, text: str = "", revision: int = 0) -> Thing:
    return Thing(key=key, body={"text": text}, revision=revision)


async def test_what_is_put_is_found_and_counts_its_changes(shelf: Shelf) -> None:
    assert await shelf.get(NOTES, "a") is None
    await shelf.put(NOTES, [note("a", "one"), note("b", "é\0\u2028")])
    first = await shelf.get(NOTES, "a")
    assert first is not None
    assert (first.body, first.revision) == ({"text": "one"}, 1)
    await shelf.put(NOTES, [note("a", "two"), note("a", "three")])
    second = await shelf.get(NOTES, "a")
    assert second is not None
    assert second.body == {"text": "three"}
    assert second.revision > 1
    assert second.created_ns == first.created_ns
    assert second.updated_ns >= first.updated_ns
    other = await shelf.get(NOTES, "b")
    assert other is not None
    assert other.body == {"text": "é\0\u2028"}


async def test_pages_follow_the_keys(shelf: Shelf) -> None:
    await shelf.put(NOTES, [note(f"k{number}") for number in (3, 1, 2)])
    assert [one.key for one in await shelf.page(NOTES)] == ["k1", "k2", "k3"]
    assert [one.key for one in await shelf.page(NOTES, after="k1", most=1)] == ["k2"]
    assert await shelf.count(NOTES) == 3
    assert list(await shelf.remove(NOTES, ["k3", "k9", "k1", "k3"])) == ["k3", "k1"]
    assert [one.key for one in await shelf.page(NOTES)] == ["k2"]


async def test_who_comes_second_changes_nothing(shelf: Shelf) -> None:
    assert await shelf.change(NOTES, note("a", "one"))
    assert not await shelf.change(NOTES, note("a", "another new one"))
    assert await shelf.change(NOTES, note("a", "two", revision=1))
    assert not await shelf.change(NOTES, note("a", "late", revision=1))
    found = await shelf.get(NOTES, "a")
    assert found is not None
    assert (found.body["text"], found.revision) == ("two", 2)


@pytest.mark.req("G1")
async def test_one_place_is_not_seen_from_another(shelf: Shelf) -> None:
    others = [
        Place("globex", "notes", "clerk"),
        Place("acme", "notes", "cashier"),
        Place("acme", "canvas", "clerk"),
    ]
    await shelf.put(NOTES, [note("a", "ours")])
    for other in others:
        assert await shelf.get(other, "a") is None
        assert list(await shelf.page(other)) == []
        assert list(await shelf.remove(other, ["a"])) == []
        await shelf.put(other, [note("a", "theirs")])
    found = await shelf.get(NOTES, "a")
    assert found is not None
    assert found.body == {"text": "ours"}
    assert set(await shelf.places("notes")) == {NOTES, *others[:2]}
