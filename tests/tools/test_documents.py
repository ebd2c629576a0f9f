"""Documents that were ingested: found by their owner, and in their newest version."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.tools.asking import ME, opened, told
from toolgate import Caller, Toolgate
from toolgate.shelf import Place
from toolgate.tools.documents import library

pytest.importorskip("wordllama", reason="skipped: no tools")
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("T3")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents") / "files"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(files: Path) -> AsyncGenerator[Toolgate]:
    async with opened(files.parent) as found:
        yield found


def _put(files: Path, name: str, text: str) -> None:
    (files / name).write_text(text)


async def test_a_new_version_replaces_the_older_one(gate: Toolgate, files: Path) -> None:
    caller = Caller(tenant="versions", agent="clerk")
    _put(files, "price.txt", "The price of the lamp is ten euros.")
    old = await told(gate, "document_ingest", caller, attachment_id="price.txt")
    _put(files, "copy.txt", "The price of the lamp is ten euros.")
    copy = await told(gate, "document_ingest", caller, attachment_id="copy.txt")
    assert (copy["document"], copy["unchanged"]) == (old["document"], True)
    _put(files, "price.txt", "The price of the lamp is twelve euros.")
    new = await told(gate, "document_ingest", caller, attachment_id="price.txt")
    assert (new["replaced"], new["unchanged"]) == (old["document"], False)
    # The copy still says so.
    found = await told(gate, "document_query", caller, query="price of the lamp")
    assert {one["source"] for one in found["passages"]} == {"price.txt", "copy.txt"}
    _put(files, "copy.txt", "The price of the lamp is twelve euros.")
    await told(gate, "document_ingest", caller, attachment_id="copy.txt")
    found = await told(gate, "document_query", caller, query="price of the lamp")
    assert [one["text"] for one in found["passages"]] == ["The price of the lamp is twelve euros."]
    assert found["documents"] == 1


async def test_an_output_that_was_kept_is_a_document_for_who_may_read_it(gate: Toolgate) -> None:
    long = "The secret of the lake. " * 8_000
    output = await gate.call("echo", {"text": long}, caller=ME)
    reference = output.data["reference"]
    found = await told(gate, "document_ingest", ME, attachment_id=reference)
    assert found["kind"] == "text"
    assert found["characters"] > 100_000
    other = Caller(tenant="acme", agent="another")
    refused = await gate.call("document_ingest", {"attachment_id": reference}, caller=other)
    assert refused.error is not None
    assert "no such output" in refused.error.message


MINE = Caller(tenant="acme", agent="clerk", persona="anna")
OTHERS = {
    "another persona": Caller(tenant="acme", agent="clerk", persona="ben"),
    "an agent of that name": Caller(tenant="acme", agent="anna"),
    "another tenant": Caller(tenant="globex", agent="clerk", persona="anna"),
}


@pytest.mark.parametrize("who", OTHERS)
async def test_nobody_else_finds_a_document_and_without_the_guard_they_would(
    gate: Toolgate, files: Path, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(files, "safe.txt", "The safe is behind the painting.")
    query = "where is the safe"
    await told(gate, "document_ingest", MINE, attachment_id="safe.txt")
    assert (await told(gate, "document_query", MINE, query=query))["passages"]
    assert (await told(gate, "document_query", OTHERS[who], query=query))["documents"] == 0

    def everywhere(_tenant: str, kind: str, _owner: str) -> Place:
        return Place("acme", kind, "persona:anna")

    monkeypatch.setattr(library, "Place", everywhere)
    assert (await told(gate, "document_query", OTHERS[who], query=query))["passages"]
