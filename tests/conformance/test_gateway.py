"""The official suite against a server that stands behind toolgate: nothing of it is lost."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.conformance.behind import Other, gateway
from tests.conformance.proxy import adding
from tests.conformance.suite import REVISIONS, Ran, Suite, complaints, score
from tests.servers.fixtures import needed

# Of the other server's own making: it keeps no stream for who comes back, and has no tasks.
UNSCORED = "tasks-"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return needed(Suite)


@pytest.fixture(scope="module")
def other(suite: Suite) -> Generator[Other]:
    with Other() as started:
        yield started


@pytest.mark.req("P3", "V1")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_all_that_a_server_conforms_to_it_conforms_to_through_the_gateway(
    revision: str, suite: Suite, other: Other, tmp_path: Path
) -> None:
    with gateway(tmp_path, other, revision=f'"{revision}"') as server:
        key = server.greeting["keys"]["agent"]
        async with adding(f"Authorization: Bearer {key}", server.port) as port:
            ran = await suite.run(revision, f"http://127.0.0.1:{port}/mcp", tmp_path)
    print(f"{revision} through the gateway: {score(ran)}")  # noqa: T201  shown with -rA
    ours: dict[str, Ran] = {name: one for name, one in ran.items() if not name.startswith(UNSCORED)}
    wrong = complaints(ours, ())
    assert not wrong, f"{revision}: {score(ran)}\n" + "\n".join(wrong)
