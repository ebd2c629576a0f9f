"""The official MCP conformance suite against a real server, in both revisions."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.conformance.behind import Other
from tests.conformance.proxy import adding
from tests.conformance.served import serving
from tests.conformance.suite import REVISIONS, Ran, Suite, complaints, score
from tests.server.serving import Serving
from tests.servers.fixtures import needed
from tests.servers.process import free_port

EXPECTED = Path(__file__).parent / "expected-failures.txt"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return needed(Suite)


@pytest.fixture(scope="module")
def server(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with Other("prompts") as other, serving(tmp_path_factory.mktemp("served"), other) as started:
        yield started


def expected(revision: str) -> set[str]:
    lines = [line.split() for line in EXPECTED.read_text().splitlines()]
    listed = [words for words in lines if words and words[0] != "#"]
    assert all(words[0] in REVISIONS and len(words) > 2 for words in listed), "each has a reason"
    return {words[1] for words in listed if words[0] == revision}


@pytest.mark.req("V1")
# The suite waits for tasks as it likes: 20 s where nobody else needs the machine.
@pytest.mark.timeout(120)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_scenario_of_the_official_suite_passes_but_those_that_are_listed(
    revision: str, suite: Suite, server: Serving, tmp_path: Path
) -> None:
    key = server.greeting["keys"]["agent"]
    async with adding(f"Authorization: Bearer {key}", server.port) as port:
        ran = await suite.run(revision, f"http://127.0.0.1:{port}/mcp", tmp_path)
    print(f"{revision}: {score(ran)}")  # noqa: T201  shown with -rA
    wrong = complaints(ran, expected(revision))
    assert not wrong, f"{revision}: {score(ran)}\n" + "\n".join(wrong)


@pytest.mark.req("V1")
async def test_where_nothing_listens_no_scored_scenario_passes(
    suite: Suite, tmp_path: Path
) -> None:
    ran = await suite.run("2026-07-28", f"http://127.0.0.1:{free_port()}/mcp", tmp_path)
    assert [name for name, one in ran.items() if one.scored and not one.wrong] == []


@pytest.mark.req("V1")
def test_a_scenario_that_fails_has_to_be_listed_and_one_that_passes_must_not_be() -> None:
    ran = {
        "good": Ran(scored=True),
        "bad": Ran(scored=True, failed=("why: so",)),
        "lax": Ran(scored=True, warned=("x: y",)),
        "extra": Ran(scored=False, failed=("x: y",)),
    }
    assert complaints(ran, {"bad", "lax", "extra"}) == []
    assert complaints(ran, {"lax", "extra"}) == ["fails, and is not listed: bad\n  why: so"]
    assert complaints(ran, {"bad", "extra"}) == ["fails, and is not listed: lax\n  x: y"]
    assert complaints(ran, {"bad", "lax"}) == ["fails, and is not listed: extra\n  x: y"]
    stale = [f"is listed, and does not fail: {name}" for name in ("gone", "good")]
    assert complaints(ran, {"bad", "lax", "extra", "good", "gone"}) == stale
    assert score(ran) == "2 of 3 scored scenarios pass"
