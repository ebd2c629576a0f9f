"""Commands through a whole gate, in a real sandbox: what they get, touch, and answer."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, states, until
from tests.providers.payloads import CANARY, FIRING, LITERAL, OPTIONS
from tests.providers.programs import TEXT, gate_with, shell_tool, with_bubblewrap
from toolgate import Toolgate
from toolgate.errors import InvalidArguments, ToolNotFound
from toolgate.sandbox import choosing
from toolgate.sandbox.probing import interpreter

pytestmark = pytest.mark.req("P4")
PYTHON = "python3"
INTERPRETER = Path(sys.executable).resolve()
LIST = {"texts": {"type": "array", "items": TEXT}}
SHOW_WORDS = "import json, sys; print(json.dumps(sys.argv[1:]))"
SHOW_ENV = "import json, os; print(json.dumps(dict(os.environ)))"
FAILING = "import sys; print('out'); sys.stderr.write('\\x1b[31mbecause' + 'x' * 9000); sys.exit(3)"


@pytest.fixture(autouse=True)
def bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    with_bubblewrap(monkeypatch)


async def data(gate: Toolgate, tool: str, args: dict[str, Any] | None = None) -> Any:
    output = await gate.call(tool, args or {}, caller=ME)
    assert output.ok, output.error
    return output.data


async def test_every_payload_arrives_as_one_literal_word(tmp_path: Path) -> None:
    shows = shell_tool(
        "show", PYTHON, "-c", SHOW_WORDS, "--", "{texts...}",
        properties=LIST, config={"output": "json", "ats": ["texts"]}, effect="pure",
    )  # fmt: skip
    payloads = [*LITERAL, *OPTIONS, "", "@file", "\N{PILE OF POO}", "x" * 10_000]
    async with gate_with(tmp_path, shows) as gate:
        assert await data(gate, "show", {"texts": payloads}) == ["--", *payloads]


async def test_rm_removes_what_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    removes = shell_tool("remove", "rm", "{path}", config={"folder": "work", "writable": ["work"]})
    async with gate_with(tmp_path, removes) as gate:
        work = tmp_path / "work"
        odd = f"$(touch {CANARY}); *"
        for name in (odd, "kept", "other"):
            (work / name).touch()
        assert (await data(gate, "remove", {"path": odd}))["exit_code"] == 0
        for payload in FIRING[:4]:
            output = await gate.call("remove", {"path": payload}, caller=ME)
            assert output.error is not None
            assert output.error.code == "execution_failed"
        for payload in OPTIONS[:20]:
            with pytest.raises(InvalidArguments, match="dash or a plus"):
                await gate.call("remove", {"path": payload}, caller=ME)
        assert sorted(one.name for one in work.iterdir()) == ["kept", "other"]


async def test_an_option_that_writes_a_file_writes_none_unless_options_are_declared(
    tmp_path: Path,
) -> None:
    there = {"folder": "work", "writable": ["work"]}
    options = [f"--output={CANARY}", f"-o{CANARY}"]
    async with gate_with(
        tmp_path,
        shell_tool("sorted", "sort", "{path}", config=there),
        # Of its options, unlike those of sort, none runs a program.
        shell_tool("careless", "shuf", "{path}", config=there | {"dashes": ["path"]}),
    ) as gate:
        work = tmp_path / "work"
        (work / "names").write_text("b\na\n")
        for option in options:
            with pytest.raises(InvalidArguments, match="dash or a plus"):
                await gate.call("sorted", {"path": option}, caller=ME)
        assert not (work / CANARY).exists()
        assert (await data(gate, "sorted", {"path": "names"}))["stdout"] == "a\nb\n"
        # The guard-off control: where a definition takes options, they do what they say.
        for option in options:
            await data(gate, "careless", {"path": option})
            (work / CANARY).unlink()


async def test_no_variable_of_ours_or_of_an_argument_reaches_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steering = ("LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "GIT_SSH", "IFS", "TOOLGATE_CANARY")
    for name in steering[1:]:
        monkeypatch.setenv(name, "x")
    config = {"output": "json", "env": {"ARG_TEXT": "{path}", "LANG": "C"}}
    shows = shell_tool("show", PYTHON, "-c", SHOW_ENV, config=config, effect="pure")
    async with gate_with(tmp_path, shows) as gate:
        text = "x\nLD_PRELOAD=/y"
        found = await data(gate, "show", {"path": text} | dict.fromkeys(steering, "/z"))
    assert found["ARG_TEXT"] == text
    assert found["LANG"] == "C"
    assert not set(steering) & set(found)
    assert found["PATH"].startswith("/usr/local/sbin:")
    # The guard-off control: a program that is started without more gets all of them.
    plainly = subprocess.run(  # noqa: ASYNC221  it ends at once
        [sys.executable, "-I", "-c", SHOW_ENV], capture_output=True, check=True
    )
    assert set(steering[1:]) <= set(json.loads(plainly.stdout))


async def test_a_hostile_folder_is_worked_in_and_not_used(tmp_path: Path) -> None:
    load = "import json; print(json.__file__)"
    config = {"output": "text", "folder": "work", "writable": ["work"]}
    trusting = config | {"env": {"PYTHONSAFEPATH": ""}}
    async with gate_with(
        tmp_path,
        shell_tool("load", PYTHON, "-c", load, config=config, effect="pure"),
        shell_tool("trusting", PYTHON, "-c", load, config=trusting, effect="pure"),
        shell_tool(
            "version", "git", "config", "--get", "alias.x", config=config | {"ok_codes": [1]}
        ),
    ) as gate:
        work = tmp_path / "work"
        for name in ("git", PYTHON, "rm"):
            (work / name).write_text(f"#!/bin/sh\ntouch {CANARY}\n")
            (work / name).chmod(0o755)
        for name in ("json.py", "sitecustomize.py", "usercustomize.py", "x.pth"):
            (work / name).write_text(f"import os; open('{CANARY}', 'w')\n")
        (work / ".gitconfig").write_text("[alias]\n\tx = !touch canary\n")
        assert "work" not in await data(gate, "load")
        assert await data(gate, "version") == ""
        assert not (work / CANARY).exists()
        # The trap is one: a definition that says so would step into it.
        assert "work" in await data(gate, "trusting")
        assert (work / CANARY).exists()


async def test_results_come_as_they_are_asked_for(tmp_path: Path) -> None:
    pure: dict[str, Any] = {"effect": "pure", "properties": {"deep": {"type": "object"}}}
    async with gate_with(
        tmp_path,
        shell_tool("full", "cat", config={"stdin": "<{deep}>"}, **pure),
        shell_tool("text", "cat", config={"stdin": "<{deep}>", "output": "text"}, **pure),
        shell_tool("json", "cat", config={"stdin": "{deep}", "output": "json"}, **pure),
        shell_tool("broken", "cat", config={"stdin": "<{deep}>", "output": "json"}, **pure),
    ) as gate:
        given = {"deep": {"a": "ü"}}
        shown = '<{"a":"ü"}>'
        assert await data(gate, "full", given) == {"exit_code": 0, "stdout": shown, "stderr": ""}
        assert await data(gate, "text", given) == shown
        assert await data(gate, "json", given) == given["deep"]
        broken = await gate.call("broken", given, caller=ME)
        assert broken.error is not None
        assert broken.error.code == "invalid_output"
        with pytest.raises(InvalidArguments, match="deep: is missing"):
            await gate.call("text", {}, caller=ME)


async def test_what_a_failed_command_means_depends_on_what_it_does(tmp_path: Path) -> None:
    words = (PYTHON, "-c", FAILING)
    async with gate_with(
        tmp_path,
        shell_tool("reads", *words, effect="pure"),
        shell_tool("repeats", *words, effect="idempotent"),
        shell_tool("changes", *words),
        shell_tool("says_no", *words, config={"refused_codes": [3]}),
        shell_tool("is_fine", *words, config={"ok_codes": [0, 3]}),
    ) as gate:
        failed = await gate.call("changes", {}, caller=ME)
        assert failed.error is not None
        assert "may have taken effect" in failed.error.message
        assert failed.error.details["exit_code"] == 3
        assert "\x1b" not in failed.error.message
        assert len(failed.error.message) < 2_500
        said_no = await gate.call("says_no", {}, caller=ME)
        assert said_no.error is not None
        assert said_no.error.code == "tool_error"
        await gate.call("reads", {}, caller=ME)
        await gate.call("repeats", {}, caller=ME)
        assert (await data(gate, "is_fine"))["exit_code"] == 3
        assert sorted(await states(gate)) == [
            ("changes", "unknown", "execution_failed"),
            ("is_fine", "succeeded", ""),
            ("reads", "failed", "execution_failed"),
            ("repeats", "failed", "execution_failed"),
            ("says_no", "failed", "tool_error"),
        ]


async def test_a_command_ends_in_time_and_within_its_bounds(tmp_path: Path) -> None:
    flood = "import sys\nwhile True: sys.stdout.write('x' * 4096)"
    begin = f"import time; open('{CANARY}', 'w').close(); time.sleep(60); open('late', 'w')"
    there = {"folder": "work", "writable": ["work"]}
    async with gate_with(
        tmp_path,
        shell_tool("slow", PYTHON, "-c", begin, config=there, timeout=2),
        shell_tool("brief", "sleep", "60", config={"limits": {"seconds": 0.3}}, effect="pure"),
        shell_tool("flood", PYTHON, "-c", flood, config={"limits": {"output": 1000}}),
    ) as gate:
        codes: list[str] = []
        for tool in ("slow", "brief", "flood"):
            output = await gate.call(tool, {}, caller=ME)
            assert output.error is not None
            codes.append(output.error.code)
        assert codes == ["timed_out", "timed_out", "execution_failed"]
        assert (tmp_path / "work" / CANARY).exists()
        assert ("slow", "unknown", "timed_out") in await states(gate)
        await until(lambda: not _runs("time.sleep(60); open"))


async def test_a_free_shell_waits_for_a_person(tmp_path: Path) -> None:
    free = shell_tool(
        "anything", "bash", "-c", "{script}",
        properties={"script": TEXT}, config={"shell": True}, destructive=True,
        requires_approval=True,
    )  # fmt: skip
    careless = shell_tool("careless", "bash", "-c", "{script}", properties={"script": TEXT})
    async with gate_with(tmp_path, free, careless) as gate:
        output = await gate.call("anything", {"script": "echo hi | wc -l"}, caller=ME)
        assert output.status == "pending_approval"
        assert "run an argument as code" in gate.catalog.current.unusable["careless"]


async def test_without_a_sandbox_nothing_runs_and_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touches = shell_tool("touch", "touch", "{path}", config={"writable": ["work"]})
    made = tmp_path / "work" / CANARY
    place = str(made)
    async with gate_with(tmp_path, touches) as gate:
        assert (await data(gate, "touch", {"path": place}))["exit_code"] == 0
    made.unlink()
    monkeypatch.setattr(choosing, "TRIED", {})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("bwrap") is None
    async with gate_with(tmp_path, touches) as gate:
        assert "No sandbox holds" in gate.catalog.current.unusable["touch"]
        with pytest.raises(ToolNotFound):
            await gate.call("touch", {"path": place}, caller=ME)
    assert not made.exists()


def _runs(words: str) -> bool:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words.encode() in process.read_bytes():
                return True
        except OSError:
            continue
    return False


async def test_a_program_of_an_environment_runs_with_its_folders(tmp_path: Path) -> None:
    home = tmp_path / "env"
    (home / "bin").mkdir(parents=True)
    (home / "pyvenv.cfg").write_text(f"home = {INTERPRETER.parent}\n")
    (home / "bin" / "python").symlink_to(INTERPRETER)
    tool = shell_tool(
        "prefix",
        *("env/bin/python", "-c", "import sys; print(sys.prefix)"),
        config={"readable": ["env", *interpreter()], "output": "text"},
        effect="pure",
    )
    async with gate_with(tmp_path, tool) as gate:
        assert await data(gate, "prefix") == f"{home}\n"
