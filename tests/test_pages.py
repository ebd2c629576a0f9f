"""The pages: every link leads somewhere, and every page is found from the first one."""

import re
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(
        page
        for room in ("docs", "examples", "benchmarks")
        for page in sorted((ROOT / room).rglob("*.md"))
    ),
]
LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([^)\s]+))?\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def links(page: Path) -> list[tuple[Path, str]]:
    """Where its links lead, and to which heading."""
    shown = CODE.sub("", page.read_text("utf-8"))
    return [
        ((page.parent / path).resolve() if path else page, heading)
        for path, heading in LINK.findall(shown)
    ]


def headings(page: Path) -> set[str]:
    """What its headings are called in a link; the second of a name ends with `-1`."""
    found: set[str] = set()
    for line in re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL).splitlines():
        if not line.startswith("#"):
            continue
        name = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
        others = (f"{name}-{number}" for number in count(1))
        found.add(name if name not in found else next(one for one in others if one not in found))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for there, heading in links(page):
        assert there.exists(), f"{there} is not there"
        if heading and there.suffix == ".md":
            assert heading in headings(there), f"{there.name} has no heading {heading}"


def test_every_page_is_found_from_the_first() -> None:
    found, new = {README}, [README]
    while new:
        ahead = {there for there, _ in links(new.pop()) if there.suffix == ".md"} - found
        found |= ahead
        new += ahead
    lost = {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - found
    assert {page.relative_to(ROOT).as_posix() for page in lost} == set()


def test_the_scan_sees_what_it_looks_for(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A `b` c?\n## A b c\n[x](gone.md) [y](#nowhere) `[z](code.md)`\n")
    assert links(page) == [(tmp_path / "gone.md", ""), (page, "nowhere")]
    assert headings(page) == {"a-b-c", "a-b-c-1"}
