"""Five hundred files that must not be taken: each refused in words, none of them half loaded."""

from collections import Counter
from pathlib import Path

import pytest

from tests.spec.malformed import KINDS, Malformed, malformed
from toolgate.catalog.catalog import Catalog
from toolgate.errors import InvalidSpecs
from toolgate.sources.files import FileSource, read_file
from toolgate.spec.problem import Problem
from toolgate.spec.reader import MAX_PROBLEMS
from toolgate.spec.tool import ToolSpec

GOOD = b"tools: [{name: ping, description: Answers., provider: http, effect: pure}]"
NOT_FOR_PEOPLE = ("Traceback", 'File "', "<class", " object at 0x", "\n", "\x1b", "\x00")


def refused(folder: Path, file: Malformed) -> InvalidSpecs:
    path = folder / file.name
    path.write_bytes(file.raw)
    with pytest.raises(InvalidSpecs) as refusal:
        read_file(path, file.name)
    return refusal.value


@pytest.mark.req("C1")
def test_there_are_five_hundred_different_files_and_some_of_every_kind() -> None:
    kinds = Counter(file.kind for file in malformed())
    assert len({(file.name, file.raw) for file in malformed()}) >= 500
    assert kinds.keys() == KINDS.keys()


@pytest.mark.req("C1", "C2")
@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_file_is_refused_with_sentences_that_say_what_to_write(
    kind: str, tmp_path: Path
) -> None:
    for file in (file for file in malformed() if file.kind == kind):
        problems = refused(tmp_path, file).problems
        assert 0 < len(problems) <= MAX_PROBLEMS
        for problem in problems:
            assert isinstance(problem, Problem)
            said = str(problem)
            assert said.startswith(f"{file.name}:"), said
            assert problem.message, said
            assert problem.write[0].isupper(), said
            assert problem.write[-1] in ".?", said
            assert len(said) < 1_000, said
            assert not [odd for odd in NOT_FOR_PEOPLE if odd in said], said
            said.encode()


@pytest.mark.req("C2")
async def test_a_malformed_file_leaves_the_catalog_with_its_last_good_part(tmp_path: Path) -> None:
    def usable(spec: ToolSpec) -> str | None:
        return None

    (tmp_path / "good.yaml").write_bytes(GOOD)
    catalog = Catalog([FileSource(tmp_path, ["*.yaml", "*.json"])], usable=usable)
    good = (await catalog.reload()).specs
    assert list(good) == ["ping"]
    for file in malformed():
        (tmp_path / file.name).write_bytes(file.raw)
        snapshot = await catalog.reload()
        assert snapshot.specs == good, file.kind
        assert [one.ok for one in catalog.health()] == [False], file.kind
        (tmp_path / file.name).unlink()
    assert (await catalog.reload()).specs == good
    assert [one.ok for one in catalog.health()] == [True]
