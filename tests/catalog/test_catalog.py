"""Sources merged into one snapshot that is swapped whole, or not at all."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.catalog.catalog import Catalog
from toolgate.errors import CatalogError, InvalidSpecs, NameClash, SourceUnavailable
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import BUILT_IN, Origin, ToolSpec


class Shelf:
    """A source that holds what a test puts there."""

    def __init__(self, name: str, *tools: str, required: bool = False) -> None:
        self.name = name
        self.required = required
        self.tools = list(tools)
        self.failure: CatalogError | None = None

    async def load(self) -> Sequence[ToolSpec]:
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return [spec(name, self.name) for name in self.tools]


def spec(name: str, source: str = "here", **fields: object) -> ToolSpec:
    given = {"name": name, "provider": "http"} | fields
    return read_tool(given, origin=Origin("shelf", source))


def usable(_spec: ToolSpec) -> str | None:
    return None


def catalog(*sources: Shelf) -> Catalog:
    return Catalog(sources, usable=usable)


@pytest.mark.req("C2")
async def test_sources_are_merged_by_name_into_one_snapshot() -> None:
    whole = catalog(Shelf("one", "b", "a"), Shelf("two", "c"))
    snapshot = await whole.reload()
    assert list(snapshot.specs) == ["a", "b", "c"]
    found = snapshot.get("c")
    assert found is not None
    assert str(found.origin) == "shelf two"
    assert snapshot.get("d") is None
    assert [(one.source, one.tools, one.ok) for one in whole.health()] == [
        ("one", 2, True),
        ("two", 1, True),
    ]
    assert [one.name for one in whole.part("one")] == ["b", "a"]


@pytest.mark.req("C2")
async def test_every_change_has_a_new_revision_and_old_snapshots_stay_as_they_were() -> None:
    shelf = Shelf("one", "a")
    whole = catalog(shelf)
    assert whole.current.revision == 0
    first = await whole.reload()
    shelf.tools = ["b"]
    second = await whole.reload()
    third = whole.put("program", [spec("c")])
    assert [first.revision, second.revision, third.revision] == [1, 2, 3]
    assert [list(one.specs) for one in (first, second, third)] == [["a"], ["b"], ["b", "c"]]
    with pytest.raises(TypeError):
        first.specs["x"] = spec("x")  # type: ignore[index]
    with pytest.raises(AttributeError):
        first.revision = 9  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.req("C2")
async def test_a_clash_names_both_sources_and_leaves_everything_as_it_was() -> None:
    one, two = Shelf("one", "a", required=True), Shelf("two", "b", required=True)
    whole = catalog(one, two)
    before = await whole.reload()
    health = whole.health()
    one.tools, two.tools = ["a", "new"], ["b", "a"]
    with pytest.raises(NameClash) as clash:
        await whole.reload()
    assert "'a'" in str(clash.value)
    assert "shelf one" in str(clash.value)
    assert "shelf two" in str(clash.value)
    assert whole.current is before
    assert whole.health() == health
    assert [found.name for found in whole.part("one")] == ["a"]
    two.tools = ["b"]
    assert list((await whole.reload()).specs) == ["a", "b", "new"]


@pytest.mark.req("C2")
async def test_a_clash_inside_one_source_is_one_too() -> None:
    with pytest.raises(NameClash):
        await catalog(Shelf("one", "a", "a", required=True)).reload()


@pytest.mark.req("C2")
async def test_what_a_program_adds_clashes_as_well_and_can_be_asked_first() -> None:
    whole = catalog(Shelf("one", "a"))
    before = await whole.reload()
    for add in (whole.check, whole.put):
        with pytest.raises(NameClash, match=r"shelf one.*shelf here"):
            add("program", [spec("a")])
    assert whole.current is before
    whole.check("program", [spec("b")])
    assert whole.current is before
    assert list(whole.put("program", [spec("b")]).specs) == ["a", "b"]
    assert list((await whole.reload()).specs) == ["a", "b"], "a reload keeps it"


@pytest.mark.req("C2")
@pytest.mark.parametrize("failure", [SourceUnavailable("It is away."), InvalidSpecs(["bad"])])
@pytest.mark.parametrize("required", [True, False])
async def test_a_source_that_fails_keeps_its_last_good_part_and_is_unhealthy(
    failure: CatalogError,
    required: bool,  # noqa: FBT001
) -> None:
    one, two = Shelf("one", "a", required=required), Shelf("two", "b")
    whole = catalog(one, two)
    await whole.reload()
    one.failure, two.tools = failure, ["b", "c"]
    assert list((await whole.reload()).specs) == ["a", "b", "c"]
    ill, well = whole.health()
    assert (ill.ok, ill.tools, ill.problem) == (False, 1, str(failure))
    assert (well.ok, well.tools, well.problem) == (True, 2, "")
    one.failure, one.tools = None, []
    assert list((await whole.reload()).specs) == ["b", "c"]
    assert all(one.ok for one in whole.health())


@pytest.mark.req("C2")
async def test_a_required_source_that_fails_stops_the_first_load() -> None:
    one, two = Shelf("one", "a", required=True), Shelf("two", "b")
    one.failure = SourceUnavailable("It is away.")
    whole = catalog(one, two)
    with pytest.raises(SourceUnavailable, match="It is away"):
        await whole.reload()
    assert whole.current.revision == 0
    assert not whole.current.specs
    one.failure = None
    assert list((await whole.reload()).specs) == ["a", "b"]


@pytest.mark.req("C2")
async def test_a_source_that_may_fail_does_not_stop_the_first_load() -> None:
    one, two = Shelf("one", "a"), Shelf("two", "b")
    one.failure = SourceUnavailable("It is away.")
    assert list((await catalog(one, two).reload()).specs) == ["b"]


@pytest.mark.req("C2")
async def test_sources_that_are_called_alike_do_not_replace_each_other() -> None:
    whole = catalog(Shelf("one", "a"), Shelf("one", "b"), Shelf("one", "c"))
    assert list((await whole.reload()).specs) == ["a", "b", "c"]
    assert [one.source for one in whole.health()] == ["one", "one (2)", "one (3)"]


@pytest.mark.req("C2")
async def test_what_is_added_while_sources_are_asked_is_not_lost() -> None:
    whole = catalog(Shelf("one", "a"))
    reloading = asyncio.create_task(whole.reload())
    await asyncio.sleep(0)
    whole.put("program", [spec("b")])
    assert list((await reloading).specs) == ["a", "b"]


@pytest.mark.req("C2")
async def test_reloads_at_the_same_moment_come_one_after_the_other() -> None:
    shelf = Shelf("one", "a")
    whole = catalog(shelf)

    async def changed(number: int) -> int:
        shelf.tools = [f"a{number}"]
        return (await whole.reload()).revision

    found = await asyncio.gather(*(changed(number) for number in range(5)))
    assert sorted(found) == list(range(1, max(found) + 1)) or found == [1] * 5
    assert list(whole.current.specs) == ["a4"]


@pytest.mark.req("C2")
async def test_a_reload_that_finds_nothing_new_keeps_the_snapshot() -> None:
    shelf = Shelf("one", "a")
    whole = catalog(shelf)
    first = await whole.reload()
    assert await whole.reload() is first
    shelf.tools = ["a", "b"]
    assert (await whole.reload()).revision == first.revision + 1


@pytest.mark.req("C4")
async def test_a_spec_without_an_implementation_is_listed_with_the_reason() -> None:
    def only_a(one: ToolSpec) -> str | None:
        return None if one.name == "a" else "it has no implementation"

    snapshot = await Catalog([Shelf("one", "a", "b")], usable=only_a).reload()
    assert list(snapshot.specs) == ["a", "b"]
    assert snapshot.unusable == {"b": "it has no implementation"}


@pytest.mark.req("C1", "C4")
def test_a_tool_whose_compensation_is_not_in_the_catalog_cannot_be_used() -> None:
    whole = catalog()
    pay = spec("pay", effect="compensatable", compensation="refund")
    assert whole.put("program", [pay]).unusable == {
        "pay": "its compensation tool 'refund' is not in the catalog"
    }
    assert not whole.put("program", [pay, spec("refund")]).unusable


NAMES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)


@pytest.mark.req("C2")
@given(parts=st.lists(NAMES, max_size=4))
def test_a_merge_holds_every_tool_of_every_part_or_is_refused(parts: list[list[str]]) -> None:
    whole = catalog()
    expected: set[str] = set()
    for number, names in enumerate(parts):
        before = whole.current
        try:
            whole.put(f"part {number}", [spec(name) for name in names])
        except NameClash:
            assert expected.intersection(names)
            assert whole.current is before
        else:
            assert not expected.intersection(names)
            expected.update(names)
        assert set(whole.current.specs) == expected


@pytest.mark.req("C2")
async def test_a_clash_with_a_source_that_is_not_required_is_that_sources_failure() -> None:
    files, remote = Shelf("files", "pay", required=True), Shelf("remote", "pay", "refund")
    whole = catalog(files, remote)
    await whole.reload()
    assert list(whole.current.specs) == ["pay"]
    health = {one.source: one for one in whole.health()}
    assert health["files"].ok
    assert not health["remote"].ok
    assert "shelf files" in health["remote"].problem

    remote.tools = ["refund"]
    await whole.reload()
    assert list(whole.current.specs) == ["pay", "refund"]
    assert all(one.ok for one in whole.health())


@pytest.mark.req("C2")
@pytest.mark.parametrize("name", ["mcp:good:fine", "toolgate:x", "focal:x", "mcp:"])
async def test_a_name_that_is_kept_for_others_is_refused_whoever_brings_it(name: str) -> None:
    for origin in (Origin("openapi", "x"), Origin("http", "x"), Origin("mcp", "other")):
        held = ToolSpec(name=name, description="It takes a name.", origin=origin)
        with pytest.raises(NameClash, match="is kept for"):
            catalog().put("part", [held])
    with pytest.raises(InvalidSpecs, match="is kept for"):
        spec(name)
    own = ToolSpec(name="mcp:good:fine", description="Its own.", origin=Origin("mcp", "good"))
    assert "mcp:good:fine" in catalog().put("part", [own]).specs


@pytest.mark.req("C2")
async def test_what_an_operator_writes_stands_in_the_place_of_a_built_in_tool() -> None:
    def own(kind: str, where: str) -> ToolSpec:
        return msgspec.structs.replace(spec("read_file"), origin=Origin(kind, where))

    built_in = own("toolgate", BUILT_IN)
    for kind in ("file", "mcp", "python"):
        for first, second in ((built_in, own(kind, "mine")), (own(kind, "mine"), built_in)):
            whole = catalog()
            whole.put("one", [first])
            whole.put("two", [second])
            assert whole.current.specs["read_file"].origin.kind == kind
    whole = catalog()
    whole.put("one", [built_in])
    for kind in ("http", "openapi"):
        with pytest.raises(NameClash):
            whole.put("two", [own(kind, "elsewhere")])
