"""The official suite against a server that stands behind toolgate: nothing of it is lost."""

from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.conformance.behind import Given, Other, gateway
from tests.conformance.proxy import adding
from tests.conformance.suite import REVISIONS, Ran, Suite, complaints, score
from tests.servers.fixtures import needed
from tests.servers.process import AbsentError

# Of the other server's own making: it keeps no stream for who comes back, and has no tasks.
UNSCORED = "tasks-"
# Scored scenarios that the server of the given fixtures passes by itself.
PASSED = {"2025-11-25": 28, "2026-07-28": 37}
# It has not all tools that the suite calls. To the name of one it says that the call failed, which
# counts as an answer of the tool; a gateway says that there is no such tool, as the protocol wants.
UNTESTABLE = "Not testable: server does not list the diagnostic tool"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return needed(Suite)


@pytest.fixture(scope="module")
def other(suite: Suite) -> Generator[Other]:
    with Other() as started:
        yield started


@pytest.fixture
def given() -> Generator[Other]:
    try:
        made = Given()
    except AbsentError as reason:
        pytest.skip(f"skipped: {reason}")
    with made as started:
        yield started


async def through(revision: str, suite: Suite, other: Other, folder: Path) -> Mapping[str, Ran]:
    """What the suite finds at a gateway with this server behind it."""
    with gateway(folder, other, revision=f'"{revision}"') as server:
        key = server.greeting["keys"]["agent"]
        async with adding(f"Authorization: Bearer {key}", server.port) as port:
            ran = await suite.run(revision, f"http://127.0.0.1:{port}/mcp", folder)
    print(f"{revision} through the gateway: {score(ran)}")  # noqa: T201  shown with -rA
    return ran


@pytest.mark.req("P3", "V1")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_all_that_a_server_conforms_to_it_conforms_to_through_the_gateway(
    revision: str, suite: Suite, other: Other, tmp_path: Path
) -> None:
    ran = await through(revision, suite, other, tmp_path)
    ours: dict[str, Ran] = {name: one for name, one in ran.items() if not name.startswith(UNSCORED)}
    wrong = complaints(ours, ())
    assert not wrong, f"{revision}: {score(ran)}\n" + "\n".join(wrong)


@pytest.mark.req("P3", "V1")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_so_does_a_server_that_somebody_else_made(
    revision: str, suite: Suite, given: Other, tmp_path: Path
) -> None:
    (alone := tmp_path / "alone").mkdir()
    (behind := tmp_path / "behind").mkdir()
    before = await suite.run(revision, given.url, alone)
    print(f"{revision} of the server alone: {score(before)}")  # noqa: T201
    ran = await through(revision, suite, given, behind)
    passed = [name for name, one in before.items() if one.scored and not one.failed]
    assert len(passed) >= PASSED[revision], "the control: it is no empty server"
    lost = {name: [why for why in ran[name].failed if UNTESTABLE not in why] for name in passed}
    assert not any(lost.values()), f"{revision}: {score(ran)}\n{lost}"
