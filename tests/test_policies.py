"""Policies read, checked and tested without a gate, for whoever writes them."""

from pathlib import Path
from typing import Any

import pytest

from toolgate.bootstrap import Toolgate
from toolgate.caller import Action
from toolgate.errors import InvalidPolicy, SettingsInvalid
from toolgate.policies import check_policy, policy_at, run_cases
from toolgate.settings.gate import Policy
from toolgate.settings.settings import Settings

RULE = 'package toolgate\n\nrestrict contains "not bob" if input.caller.user == "bob"\n'
OTHER = 'package toolgate\n\nrestrict contains "not ann" if input.caller.user == "ann"\n'
CASES = """\
- {note: bob may not, caller: {user: bob}, tool: echo, want: deny, why: not bob}
- {note: ann may, caller: {user: ann}, tool: echo, want: allow}
"""


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, "utf-8")
    return folder


@pytest.mark.req("G3")
def test_a_folder_is_read_as_the_gate_would(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    bare = check_policy(settings)
    assert (bare.files, bare.reads, bare.problems) == (0, (), ())
    assert bare.revision
    write(tmp_path / "policies", mine__rego=RULE, cases__yaml=CASES)
    found = check_policy(settings)
    assert (found.files, found.problems) == (1, ())
    assert found.revision != bare.revision
    write(tmp_path / "policies", mine__rego=RULE + "deny contains {\n")
    broken = check_policy(settings)
    assert (broken.revision, broken.files) == ("", 0)
    assert broken.problems[0].startswith("mine.rego:")


@pytest.mark.req("G3")
def test_another_folder_can_be_meant_and_has_to_be_there(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    other = write(tmp_path / "other", mine__rego=RULE)
    assert check_policy(settings, other).files == 1
    assert check_policy(settings).files == 0
    missing = check_policy(settings, tmp_path / "missing")
    assert "there is no such folder" in missing.problems[0]
    with pytest.raises(InvalidPolicy):
        policy_at(settings, tmp_path / "missing")


@pytest.mark.req("G3")
@pytest.mark.parametrize("there", ["nothing", "a file"])
async def test_a_folder_that_the_settings_name_has_to_be_there(tmp_path: Path, there: str) -> None:
    settings = Settings(root=tmp_path, policy=Policy(path="policys"))
    if there == "a file":
        (tmp_path / "policys").write_text(RULE, "utf-8")
    with pytest.raises(
        SettingsInvalid, match=r"policy\.path: there is no folder 'policys'"
    ) as told:
        check_policy(settings)
    assert str(tmp_path) not in told.value.message
    with pytest.raises(SettingsInvalid, match=r"policy\.path"):
        async with Toolgate.open(settings):
            pass
    (tmp_path / "policys").unlink(missing_ok=True)
    write(tmp_path / "policys", mine__rego=RULE)
    assert check_policy(settings).files == 1
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        assert gate.gate.health()[0].ok, "nobody has named the default one"


@pytest.mark.req("G3")
def test_files_of_data_are_counted_too(tmp_path: Path) -> None:
    write(tmp_path / "policies", a__json="{}", b__yaml="shop: {x: 1}", cases__yaml=CASES)
    found = check_policy(Settings(root=tmp_path))
    assert (found.files, found.documents, found.problems) == (0, 2, ())


@pytest.mark.req("G3")
def test_settings_say_whether_the_bundled_policy_counts(tmp_path: Path) -> None:
    write(tmp_path / "policies", mine__rego=RULE)
    alone = Settings(root=tmp_path, policy=Policy(bundled=False))
    assert "default allow" in check_policy(alone).problems[0]
    assert check_policy(Settings(root=tmp_path)).problems == ()


@pytest.mark.req("G3")
async def test_stored_modules_stand_beside_the_files(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    write(tmp_path / "policies", mine__rego=RULE, cases__yaml=CASES)
    results = await run_cases(settings, None, [])
    assert [(one.ok, one.got) for one in results] == [(True, False), (True, True)]
    document: dict[str, Any] = {
        "action": Action.REQUEST.value,
        "caller": {"tenant": "acme", "agent": "a", "user": "ann", "persona": "", "roles": []},
        "tool": {"name": "echo", "effect": "pure", "enabled": True},
        "args": {},
        "context": {"read_only": False, "no_web": False, "facts": {}},
    }
    assert await policy_at(settings).allows(document) is True
    assert await policy_at(settings, stored={"other": OTHER}).allows(document) is False


@pytest.mark.req("G3")
async def test_cases_are_found_in_the_folder_or_named(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    folder = write(tmp_path / "policies", mine__rego=RULE)
    assert await run_cases(settings, None, []) == []
    write(folder / "inner", some_cases__yaml=CASES)
    assert len(await run_cases(settings, None, [])) == 2
    write(folder / "inner", some_cases__yaml="- {note: x}")
    with pytest.raises(InvalidPolicy) as wrong:
        await run_cases(settings, None, [])
    assert "inner/some_cases.yaml: x: " in wrong.value.message
    write(folder / "inner", some_cases__yaml="- {notte: x}")
    with pytest.raises(InvalidPolicy, match=r"did you mean 'note'\?$"):
        await run_cases(settings, None, [])
    write(folder / "inner", some_cases__yaml="- {note: x}")
    with pytest.raises(InvalidPolicy, match=r"allow or deny\.$"):
        await run_cases(settings, None, [])
    assert str(tmp_path) not in wrong.value.message
    elsewhere = write(tmp_path / "elsewhere", named__yaml=CASES) / "named.yaml"
    assert len(await run_cases(settings, None, [elsewhere, elsewhere])) == 2, "once each"
    elsewhere.write_bytes(b"\xff")
    for file in (elsewhere, tmp_path / "missing.yaml"):
        with pytest.raises(InvalidPolicy, match="cannot be read"):
            await run_cases(settings, None, [file])
