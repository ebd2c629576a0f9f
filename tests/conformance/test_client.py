"""The official MCP conformance suite against our client, in both revisions."""

import sys
from pathlib import Path

import pytest

from tests.conformance.client import listening
from tests.conformance.suite import REVISIONS, Suite, complaints, score
from tests.servers.fixtures import needed

HERE = Path(__file__).parent
SHIM = HERE / "shim.py"
EXPECTED = HERE / "expected-failures-client.txt"


def expected(revision: str) -> set[str]:
    lines = [line.split() for line in EXPECTED.read_text().splitlines()]
    listed = [words for words in lines if words and words[0] != "#"]
    assert all(words[0] in REVISIONS and len(words) > 2 for words in listed), "each has a reason"
    return {words[1] for words in listed if words[0] == revision}


@pytest.mark.req("P2")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_scenario_for_clients_passes_but_those_that_are_listed(
    revision: str, tmp_path: Path
) -> None:
    suite = needed(Suite)
    where = tmp_path / "s"
    async with listening(where):
        command = f"{sys.executable} -S -E {SHIM} {where}"
        ran = await suite.drive(revision, command, tmp_path)
    print(f"{revision}: {score(ran)}")  # noqa: T201  shown with -rA
    wrong = complaints(ran, expected(revision))
    assert not wrong, f"{revision}: {score(ran)}\n" + "\n".join(wrong)
