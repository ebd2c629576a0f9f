"""`toolgate policy`: checked and tested without a store, replayed with one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from tests.house import STORE
from toolgate.cli.since import parse_since

EXAMPLES = sorted(
    path
    for path in (Path(__file__).parents[2] / "examples" / "policies").iterdir()
    if path.is_dir()
)
NOT_BOB = """\
package toolgate

deny contains "bob pays nothing" if {
	input.caller.user == "bob"
	input.tool.name == "pay"
}
"""
NOT_MUCH = 'package toolgate\n\nrestrict contains "too much" if input.args.text == "much"\n'
TOOLS = """\
tools:
  - name: pay
    config: {builtin: echo}
    effect: irreversible
    input_schema: {type: object, properties: {text: {type: string}}}
"""
CASES = """\
- note: bob does not pay
  caller: {user: bob}
  tool: pay
  want: deny
  why: bob pays
- note: ann pays
  caller: {user: ann}
  tool: pay
  want: allow
"""


def write(folder: Path, text: str, name: str = "mine.rego") -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    return str(folder)


def pay(run: Run, user: str, text: str = "little") -> str:
    said = ["--args", f'{{"text": "{text}"}}', "--user", user, "--json"]
    return as_json(run("call", "pay", *said))["call_id"]


def refused(run: Run, user: str) -> bool:
    told = run("call", "pay", "--args", '{"text": "little"}', "--user", user, "--json")
    return "error" in as_json(told) and as_json(told)["error"] is not None


def flips(run: Run, *more: str) -> dict[str, Any]:
    told = run("policy", "replay", *more, "--json")
    assert told.exit_code == 0, told.output
    return as_json(told)


@pytest.mark.req("G3", "V5")
@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_fine_and_its_cases_pass(run: Run, folder: Path) -> None:
    assert run("policy", "check", "--path", str(folder)).stdout.startswith("The policy is fine: 1 ")
    told = run("policy", "test", "--path", str(folder))
    assert told.exit_code == 0
    assert told.stdout.endswith(" passed.\n")
    results = as_json(run("policy", "test", "--path", str(folder), "--json"))
    assert len(results) >= 5
    assert all(one["ok"] for one in results)
    assert not STORE.exists(), "nothing was opened"


@pytest.mark.req("G3")
def test_check_tells_every_line_that_is_wrong_and_opens_nothing(run: Run, tmp_path: Path) -> None:
    fine = as_json(run("policy", "check", "--json"))
    assert (fine["files"], fine["problems"]) == (0, [])
    write(tmp_path / "policies", NOT_MUCH)
    fine = run("policy", "check")
    assert "It reads args of each call" in fine.stdout
    write(tmp_path / "policies", "package elsewhere\n\nx := 1\n", "other.rego")
    write(tmp_path / "policies", "package toolgate\n\ndeny contains if {\n", "bad.rego")
    bad = run("policy", "check")
    assert bad.exit_code == 1
    assert "bad.rego:3" in bad.stdout
    assert "other.rego:1" in bad.stdout
    told = run("policy", "check", "--json")
    assert (told.exit_code, len(as_json(told)["problems"]) >= 2) == (1, True)
    assert str(tmp_path) not in bad.stdout + told.stdout
    assert not STORE.exists()


@pytest.mark.req("G3", "V5")
def test_cases_that_fail_say_what_was_wanted(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "policies", NOT_BOB)
    none = run("policy", "test")
    assert (none.exit_code, none.stdout.startswith("There are no cases.")) == (1, True)
    write(tmp_path / "policies", CASES, "cases.yaml")
    assert run("policy", "check").exit_code == 0, "cases are no data"
    fine = run("policy", "test")
    assert (fine.exit_code, fine.stdout) == (0, "2 of 2 cases passed.\n")
    wrong = CASES.replace("want: allow", "want: deny").replace("bob pays", "bob is poor")
    write(tmp_path / "policies", wrong, "cases.yaml")
    told = run("policy", "test")
    assert (told.exit_code, told.stdout.splitlines()) == (
        1,
        [
            "FAIL  bob does not pay: refused for another reason: bob pays nothing",
            "FAIL  ann pays: wanted deny, got allow",
            "0 of 2 cases passed.",
        ],
    )
    elsewhere = write(tmp_path / "elsewhere", CASES, "some.yaml") + "/some.yaml"
    assert run("policy", "test", elsewhere).exit_code == 0
    write(tmp_path / "elsewhere", "- note: x\n  tol: pay\n", "some.yaml")
    bad = run("policy", "test", elsewhere)
    assert (bad.exit_code, "did you mean 'tool'?" in bad.stderr) == (1, True)


@pytest.mark.req("G6", "V5")
def test_replay_shows_exactly_the_calls_that_would_flip(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, TOOLS)
    calls = {user: pay(run, user) for user in ("ann", "bob")}
    run("call", "echo", "--args", '{"text": "x"}', "--user", "bob")
    same = flips(run)
    assert (same["asked"], same["flips"], same["untold"]) == (3, [], [])
    stricter = write(tmp_path / "stricter", NOT_BOB)
    [flip] = flips(run, "--path", stricter)["flips"]
    assert (flip["tool"], flip["caller"]["user"], flip["calls"]) == ("pay", "bob", [calls["bob"]])
    assert (flip["was"], flip["now"], flip["reasons"]) == (
        "allowed",
        "refused",
        ["bob pays nothing"],
    )
    told = run("policy", "replay", "--path", stricter).stdout
    assert calls["bob"] in told
    assert calls["ann"] not in told
    assert told.splitlines()[-1] == "1 of 3 decisions since 24h ago would flip."
    assert flips(run, "--path", stricter, "--tenant", "other")["asked"] == 0
    assert flips(run, "--path", stricter, "--since", "9999-01-01")["asked"] == 0

    # Now it counts: who was refused would be let in again by what was there before.
    write(tmp_path / "policies", NOT_BOB)
    assert refused(run, "bob")
    back = flips(run, "--path", write(tmp_path / "empty", "{}", "data.json"))["flips"]
    assert [(one["was"], one["now"], one["calls"]) for one in back] == [("refused", "allowed", [])]


@pytest.mark.req("G6")
def test_replay_tells_what_it_cannot_decide(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, TOOLS)
    pay(run, "ann", "much")
    stricter = write(tmp_path / "stricter", NOT_MUCH)
    told = flips(run, "--path", stricter)
    assert (told["asked"], told["flips"]) == (0, [])
    assert [(one["tool"], one["missing"]) for one in told["untold"]] == [("pay", ["args"])]
    shown = run("policy", "replay", "--path", stricter).stdout
    assert "1 decision cannot be asked again: the policy reads args" in shown
    assert "record_calls = true" in shown
    (tmp_path / "toolgate.toml").write_text("[policy]\nrecord_calls = true\n", "utf-8")
    little, much = pay(run, "ann"), pay(run, "ann", "much")
    told = flips(run, "--path", stricter)
    assert [one["calls"] for one in told["flips"]] == [[much]]
    assert little not in str(told["flips"])
    assert (told["asked"], len(told["untold"])) == (2, 1)


@pytest.mark.req("G6")
def test_replay_knows_what_only_observing_let_pass(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, TOOLS)
    write(tmp_path / "policies", NOT_BOB)
    (tmp_path / "toolgate.toml").write_text('[policy]\nmode = "observe"\n', "utf-8")
    call = pay(run, "bob")
    told = run("explain", "pay", "--user", "bob")
    assert told.exit_code == 0
    assert "may call pay, only because the policy observes: bob pays nothing." in told.stdout
    assert "To allow it also when the policy enforces: " in told.stdout
    assert flips(run)["flips"] == [], "it would be refused again"
    [flip] = flips(run, "--path", write(tmp_path / "empty", "{}", "data.json"))["flips"]
    assert (flip["was"], flip["observed"], flip["now"], flip["calls"]) == (
        "refused",
        True,
        "allowed",
        [call],
    )
    shown = run("policy", "replay", "--path", str(tmp_path / "empty")).stdout
    assert "refused, only observed" in shown


@pytest.mark.req("G3")
def test_a_module_in_the_store_is_checked_listed_and_removed(run: Run, tmp_path: Path) -> None:
    write_tools(tmp_path, TOOLS)
    (tmp_path / "mine.rego").write_text(NOT_BOB, "utf-8")
    (tmp_path / "bad.rego").write_text("package toolgate\n\ndeny contains if {\n", "utf-8")
    (tmp_path / "bytes.rego").write_bytes(b"\xff")
    assert run("policy", "put", "mine", "mine.rego").exit_code == 0
    assert refused(run, "bob")
    assert not refused(run, "ann")
    bad = run("policy", "put", "mine", "bad.rego")
    assert (bad.exit_code, "stored:mine:3" in bad.stderr) == (1, True)
    assert run("policy", "put", "mine", "bytes.rego").exit_code == 2
    assert as_json(run("policy", "list", "--json")) == {"mine": NOT_BOB}
    assert run("policy", "list").stdout.splitlines()[1].split() == ["mine", "6"]
    assert run("policy", "remove", "mine").exit_code == 0
    assert not refused(run, "bob")


@pytest.mark.parametrize("text", ["", "yesterday", "24", "h", "-1h", "1w", "2026-13-01"])
def test_a_moment_that_is_none_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="write 90m, 24h, 7d"):
        parse_since(text)


def test_a_moment_is_one_that_the_store_can_compare_with() -> None:
    assert parse_since("2026-11-15T08:00Z") == parse_since("2026-11-15T08:00") == 1794729600 * 10**9
    assert parse_since("999999d") == parse_since("0001-01-01") == 0
    assert parse_since("9999-12-31") == 2**63 - 1
    assert 0 < parse_since("24h") < parse_since("90m") < parse_since("1s")


@pytest.mark.req("V5")
@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (
            ["--help"],
            ["regorus", "sqlalchemy", "pydantic", "yaml", "toolgate.engines"],
        ),
        (["--version"], ["regorus", "sqlalchemy", "pydantic", "toolgate.engines"]),
        (["tools", "list"], ["aiohttp", "authzed", "grpc", "redis", "uvicorn"]),
        (["policy", "check"], ["aiohttp", "authzed", "grpc", "redis", "uvicorn"]),
    ],
    ids=["help", "version", "tools list", "policy check"],
)
def test_a_command_loads_no_more_than_it_needs(
    tmp_path: Path, arguments: list[str], absent: list[str]
) -> None:
    program = (
        "import atexit, sys; sys.argv[0] = 'toolgate'\n"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))\n"
        "from toolgate.cli.main import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ended.returncode == 0
    loaded = ended.stderr.split()
    assert "toolgate.cli.main" in loaded
    assert [name for name in absent if name in loaded] == []
