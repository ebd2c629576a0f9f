"""Tool files by glob: all of them, or every problem of every file."""

import os
from pathlib import Path

import pytest

from toolgate.errors import InvalidSpecs
from toolgate.sources import files
from toolgate.sources.files import FileSource
from toolgate.spec.reader import MAX_PROBLEMS
from toolgate.spec.tool import Origin
from toolgate.text.document import MAX_BYTES

GLOBS = ("tools/*.yaml", "tools/*.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    return tmp_path


def tool_file(folder: Path, name: str, text: str) -> None:
    (folder / "tools" / name).write_text(text, "utf-8")


async def refusal(source: FileSource) -> list[str]:
    with pytest.raises(InvalidSpecs) as refused:
        await source.load()
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.req("C2")
async def test_files_of_both_syntaxes_are_read_in_the_order_of_their_names(folder: Path) -> None:
    tool_file(folder, "b.yaml", "tools: [{name: b, provider: http}]")
    tool_file(folder, "a.json", '[{"name": "a", "provider": "http"}]')
    tool_file(folder, "notes.txt", "not a tool file")
    specs = await FileSource(folder, GLOBS).load()
    assert [(spec.name, spec.origin) for spec in specs] == [
        ("a", Origin("file", "tools/a.json")),
        ("b", Origin("file", "tools/b.yaml")),
    ]


@pytest.mark.req("C2")
async def test_a_file_that_two_globs_match_is_read_once(folder: Path) -> None:
    tool_file(folder, "a.yaml", "[{name: a, provider: http}]")
    assert len(await FileSource(folder, ["tools/*.yaml", "**/*.yaml", "tools/a*"]).load()) == 1


@pytest.mark.req("C2")
async def test_no_files_are_no_tools(folder: Path) -> None:
    (folder / "tools" / "folder.yaml").mkdir()
    assert list(await FileSource(folder, GLOBS).load()) == []


@pytest.mark.req("C1", "C2")
async def test_the_problems_of_all_files_are_told_and_nothing_is_loaded(folder: Path) -> None:
    tool_file(folder, "a.yaml", "tools:\n  - name: a\n    timeout: x\n")
    tool_file(folder, "b.json", '{"tools": [}')
    tool_file(folder, "c.yaml", "[{name: c, provider: http}]")
    said = await refusal(FileSource(folder, GLOBS))
    assert [one.split(" ")[0] for one in said] == ["tools/a.yaml:3:", "tools/b.json:1:"]


@pytest.mark.req("C2")
async def test_messages_never_say_where_on_the_machine_a_file_is(folder: Path) -> None:
    tool_file(folder, "a.yaml", "tools: 7")
    outside = FileSource(folder / "tools" / "deeper", ["../*.yaml"])
    (folder / "tools" / "deeper").mkdir()
    for source in (FileSource(folder, GLOBS), outside):
        (said,) = await refusal(source)
        assert str(folder) not in said
        assert "a.yaml" in said


@pytest.mark.req("C2")
@pytest.mark.parametrize("glob", ["", "/etc/*.yaml"])
async def test_a_pattern_that_is_none_is_told(folder: Path, glob: str) -> None:
    (said,) = await refusal(FileSource(folder, [glob]))
    assert said.startswith(f"tools.files: has {glob!r}, which is no pattern of files below")


@pytest.mark.req("C2")
async def test_a_file_that_is_too_large_is_never_in_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "tools" / "a.yaml"
    path.touch()
    # A hole of the size of a disk: reading it would end the test.
    os.truncate(path, 1 << 40)
    (said,) = await refusal(FileSource(folder, GLOBS))
    assert said == f"tools/a.yaml: is {1 << 40:,} bytes; at most {MAX_BYTES:,} are read. Split it."
    os.truncate(path, 100)
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    assert "is 100 bytes" in (await refusal(FileSource(folder, GLOBS)))[0]


@pytest.mark.req("C2")
async def test_a_file_that_goes_away_or_may_not_be_read_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = folder / "tools" / "gone.yaml"

    def paths(_source: FileSource) -> list[Path]:
        return [gone]

    monkeypatch.setattr(FileSource, "_paths", paths)
    assert await refusal(FileSource(folder, GLOBS)) == [
        "tools/gone.yaml: cannot be read (No such file or directory). Make it readable, or move it."
    ]


@pytest.mark.req("C2")
async def test_patterns_that_match_a_whole_disk_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        tool_file(folder, f"{number}.yaml", "[]")
    assert list(await FileSource(folder, GLOBS).load()) == []
    monkeypatch.setattr(files, "MAX_FILES", 3)
    assert "matches more than 3 files" in (await refusal(FileSource(folder, GLOBS)))[0]


@pytest.mark.req("C2")
async def test_the_problems_of_many_files_have_an_end(folder: Path) -> None:
    for number in range(MAX_PROBLEMS + 50):
        tool_file(folder, f"{number}.yaml", "7")
    assert len(await refusal(FileSource(folder, GLOBS))) == MAX_PROBLEMS


@pytest.mark.req("C2")
async def test_a_file_name_that_is_no_text_can_be_printed(folder: Path) -> None:
    (folder / "tools" / os.fsdecode(b"\xff\x1b.yaml")).write_text("7")
    (said,) = await refusal(FileSource(folder, GLOBS))
    said.encode()
    assert "\\xff" in said
