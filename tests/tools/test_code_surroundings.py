"""What the tools for code run in: no sandbox, no run; no program of a repository; no code of ours
changed.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.tools.around.code import MARK, git, hostile
from toolgate import Caller, Toolgate, clock, premises
from toolgate.call import Output
from toolgate.errors import OutOfTime, ProviderUnavailable, ToolError
from toolgate.executor.resilience.deadline import within
from toolgate.kinds import Kinds
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.sandbox import Ended, Finished
from toolgate.settings.settings import Settings
from toolgate.tools.code.execution import LENGTH, reported
from toolgate.tools.code.interpreter import own_code
from toolgate.tools.code.ruff import checked
from toolgate.tools.code.script import script
from toolgate.tools.means import Means
from toolgate.tools.table import table

pytestmark = pytest.mark.req("T1", "T2", "T3")
ME = Caller(tenant="acme", agent="clerk")


def settings(root: Path, **more: Any) -> Settings:
    (root / "files").mkdir(exist_ok=True)
    given = {"root": root, "approvals": {"mode": "never"}, "tools": {"roots": ["files"]}}
    return Settings.model_validate({**given, **more})


@pytest.mark.req("P4")
async def test_without_a_sandbox_nothing_of_a_callers_runs(tmp_path: Path) -> None:
    refused = settings(tmp_path, sandbox={"kind": "sandlock"})
    git(tmp_path / "files", "init", "-q")
    async with Toolgate.open(refused) as gate:
        for tool, args in (
            ("code_execute", {"code": "open('/tmp/x', 'w')"}),
            ("run_shell", {"command": "touch here"}),
            ("run_tests", {}),
            ("git_status", {}),
            ("python_eval", {"expression": "6 * 7"}),
            ("lint_python", {"code": "import os\n"}),
        ):
            assert table()[tool].runs_programs
            with pytest.raises(ProviderUnavailable, match="sandlock"):
                await gate.call(tool, args, caller=ME)
        assert not (tmp_path / "files" / "here").exists()
        # However often it is asked for: it says why, and not that it might come back.
        for number in range(12):
            with pytest.raises(ProviderUnavailable, match="sandlock") as caught:
                await gate.call("code_execute", {"code": str(number)}, caller=ME)
            assert not caught.value.retryable
        # What only computes does not need one.
        solved = await gate.call("symbolic_solve", {"equations": "x - 6 = 0"}, caller=ME)
        assert solved.data["solutions"]


class Slow:
    """A sandbox whose programs go on until they are let go."""

    name, refusal = "slow", ""

    def __init__(self) -> None:
        self.running = 0
        self.let_go = asyncio.Event()

    async def run(self, _argv: Sequence[str], _policy: Policy, **_more: object) -> Finished:
        self.running += 1
        await self.let_go.wait()
        return Finished(ended=Ended.BY_ITSELF, code=0, stdout=b"", stderr=b"", seconds=0.0)


@pytest.mark.req("P4")
async def test_one_tenants_programs_take_half_of_the_places_and_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()

    async def sandbox(_kinds: Kinds) -> Slow:
        return slow

    monkeypatch.setattr(Kinds, "sandbox", sandbox)

    async with Toolgate.open(settings(tmp_path)) as gate, asyncio.timeout(30):

        def begun(caller: Caller, number: int) -> asyncio.Task[Output]:
            line = {"command": f"sleep {number}", "timeout": 20}
            return asyncio.create_task(gate.call("run_shell", line, caller=caller))

        mine = [begun(ME, number) for number in range(12)]
        await until(lambda: slow.running == 8)
        other = begun(Caller(tenant="globex", agent="clerk"), 0)
        await until(lambda: slow.running == 9)
        assert not other.done()
        await asyncio.sleep(0.1)
        assert slow.running == 9
        slow.let_go.set()
        assert all(one.ok for one in await asyncio.gather(*mine, other))
        assert slow.running == 13


@pytest.mark.req("P4", "S3")
async def test_a_program_that_got_no_turn_in_time_was_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()

    async def sandbox(_kinds: Kinds) -> Slow:
        return slow

    monkeypatch.setattr(Kinds, "sandbox", sandbox)
    lines = [{"command": f"sleep {number}"} for number in range(9)]
    async with Toolgate.open(settings(tmp_path)) as gate, asyncio.timeout(30):
        with within(clock.monotonic_ns() + 10**9):
            calls = [asyncio.create_task(gate.call("run_shell", one, caller=ME)) for one in lines]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in found].count(OutOfTime) == 1
        assert slow.running == 8


async def test_a_shell_line_waits_for_a_person(tmp_path: Path) -> None:
    asking = settings(tmp_path, approvals={"mode": "unsafe_only"})
    async with Toolgate.open(asking) as gate:
        output = await gate.call("run_shell", {"command": "touch here"}, caller=ME)
        assert output.status == "pending_approval"
    assert not (tmp_path / "files" / "here").exists()


async def test_no_program_of_a_repository_is_run(tmp_path: Path) -> None:
    mark = tmp_path / MARK
    async with Toolgate.open(settings(tmp_path)) as gate:
        folder = tmp_path / "files" / "hostile"
        hostile(folder, mark)
        output = await gate.call("git_status", {"path": "hostile"}, caller=ME)
        assert output.data["branch"] == "main"
        assert not mark.exists()
        assert not (folder / MARK).exists()


async def test_git_by_itself_would_run_it(tmp_path: Path) -> None:
    mark = tmp_path / MARK
    hostile(tmp_path / "hostile", mark)
    git(tmp_path / "hostile", "-c", "filter.bad.required=false", "status")
    assert mark.exists()


async def test_a_shell_line_does_not_change_our_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert os.path.realpath(sys.prefix) in own_code()  # noqa: ASYNC240
    ours = tmp_path / "files" / "site-packages"
    ours.mkdir(parents=True)
    line = {"command": "echo x > site-packages/toolgate.py; echo x > beside.txt"}
    monkeypatch.setattr(premises, "own_code", lambda: (str(ours),))
    async with Toolgate.open(settings(tmp_path)) as gate:
        held = await gate.call("run_shell", line, caller=ME)
        assert "Read-only" in held.data["stderr"]
        assert not (ours / "toolgate.py").exists()
        assert (tmp_path / "files" / "beside.txt").exists()
    monkeypatch.setattr(premises, "own_code", lambda: ())
    async with Toolgate.open(settings(tmp_path)) as gate:
        free = await gate.call("run_shell", line, caller=ME)
        assert free.data["exit_code"] == 0
        assert (ours / "toolgate.py").exists()


async def test_a_shell_line_in_a_root_around_the_house_finds_nothing_of_it(tmp_path: Path) -> None:
    home = tmp_path / "house"
    (home / "tools").mkdir(parents=True)
    (home / "toolgate.toml").write_text("[tools]\n")
    (tmp_path / "free").mkdir()
    open_house = settings(home, tools={"roots": [".."]})
    async with Toolgate.open(open_house) as gate:
        line = "ls -A house; echo x > house/new; echo x > house/tools/new.yaml; echo x > free/a"
        output = await gate.call("run_shell", {"command": line}, caller=ME)
        assert output.data["stdout"] == ""
        assert (tmp_path / "free" / "a").exists()
        assert sorted(path.name for path in home.iterdir()) == [
            ".toolgate", "files", "toolgate.toml", "tools",
        ]  # fmt: skip
        assert not list((home / "tools").iterdir())
        inside = await gate.call("run_shell", {"command": "ls", "folder": "house"}, caller=ME)
        assert inside.error is not None
        assert "kept by toolgate" in inside.error.message
        tested = await gate.call("run_tests", {"folder": "free"}, caller=ME)
        assert tested.data["outcome"] == "no_tests"


async def test_what_plugins_keep_is_not_in_a_shell_lines_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "files" / "data"
    data.mkdir(parents=True)
    (data / "key").write_text("a secret")
    given = settings(tmp_path, plugins={"data": "files/data"})
    async with Toolgate.open(given) as gate:
        output = await gate.call("run_shell", {"command": "cat data/key; ls"}, caller=ME)
        assert output.data["stdout"] == "data\n"
    # The guard-off control.
    monkeypatch.setattr(Means, "unseen", ())
    async with Toolgate.open(given) as gate:
        output = await gate.call("run_shell", {"command": "cat data/key"}, caller=ME)
        assert output.data["stdout"] == "a secret"


async def test_another_python_is_used_where_the_settings_name_one(tmp_path: Path) -> None:
    import venv  # noqa: PLC0415  it is slow to load

    venv.create(tmp_path / "science", with_pip=False, symlinks=True)
    package = next((tmp_path / "science" / "lib").glob("python*")) / "site-packages" / "physics.py"
    package.write_text("g = 9.81\n")
    (tmp_path / "science" / "pip.conf").write_text("a key to a package index")
    named = settings(tmp_path, tools={"roots": ["files"], "code": {"python": "science/bin/python"}})
    async with Toolgate.open(named) as gate:
        code = "import physics, os, sys\nphysics.g, os.path.exists(sys.prefix + '/pip.conf')"
        output = await gate.call("code_execute", {"code": code}, caller=ME)
        assert output.data["value"] == "(9.81, False)"
    shutil.rmtree(tmp_path / "science")


def finished(head: bytes, rest: bytes = b"", size: int | None = None) -> Finished:
    length = LENGTH.pack(len(head) if size is None else size)
    return Finished(
        ended=Ended.BY_ITSELF, code=0, stdout=length + head + rest, stderr=b"", seconds=0.1
    )


REPORT = b'{"ended":"by_itself","code":0,"stdout":"","stderr":"","files":[%s]}'


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        (b"not json", b""),
        (b"[]", b""),
        (b'{"ended":"by_magic","code":0,"stdout":"","stderr":""}', b""),
        (REPORT % b'{"path":"../x","size":1,"sent":true}', b"x"),
        (REPORT % b'{"path":"/etc/x","size":1,"sent":true}', b"x"),
        (REPORT % b'{"path":"a/./x","size":1,"sent":true}', b"x"),
        (REPORT % b'{"path":"a\\u0000","size":1,"sent":true}', b"x"),
        (REPORT % b'{"path":"a","size":2,"sent":true}', b"x"),
        (REPORT % b'{"path":"a","size":-1,"sent":true}', b""),
        (REPORT % b'{"path":"a","size":99999999999,"sent":true}', b""),
        (REPORT % b",".join([b'{"path":"a","size":0,"sent":true}'] * 65), b""),
        (REPORT % b"", b"what nobody has announced"),
    ],
)
def test_a_forged_report_is_not_believed(head: bytes, rest: bytes) -> None:
    with pytest.raises(ToolError, match="meddled"):
        reported(finished(head, rest))


def test_a_report_is_read() -> None:
    report = REPORT % b'{"path":"a/b","size":2,"sent":true},{"path":"c","size":9,"sent":false}'
    outcome = reported(finished(report, b"xy"))
    assert outcome.changed == {"a/b": b"xy"}
    assert outcome.paths == {"a/b", "c"}
    with pytest.raises(ToolError):
        reported(finished(report, b"xy", size=2**32 - 1))


@pytest.mark.parametrize("name", ["supervisor", "git", "pytest"])
def test_what_runs_inside_is_python_without_mistakes(name: str) -> None:
    found = checked(
        code=script(name), name="x.py", select=["E9", "F", "B"], ignore=[], line_length=99
    )
    # Its supervisor gives it this name.
    wrong = [one for one in found if "`asked`" not in one["message"] and one["code"] != "B018"]
    assert wrong == []
