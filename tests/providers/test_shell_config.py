"""What a definition of a command may say, and what it is told to write instead."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolgate.providers.shell.command import Command, command
from toolgate.providers.shell.places import Surroundings
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.toolfiles import read_tool_file

pytestmark = pytest.mark.req("P4")
TEXT = {"type": "string"}
PROPERTIES = {"path": TEXT, "paths": {"type": "array", "items": TEXT}, "deep": {"type": "object"}}
FREE = {"destructive": True, "requires_approval": True, "effect": "irreversible"}


def defined(config: dict[str, Any], **fields: Any) -> ToolSpec:
    properties = fields.pop("properties", PROPERTIES)
    given = {
        "name": "run_it",
        "provider": "shell",
        "config": config,
        "input_schema": {"type": "object", "properties": properties},
    }
    return read_tool(given | fields, origin=Origin("file", "tools.yaml"))


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    for name in ("work", "tools", ".toolgate", "policies"):
        (tmp_path / name).mkdir()
    (tmp_path / "toolgate.toml").touch()
    own = (tmp_path / "tools", tmp_path / "policies", tmp_path / "toolgate.toml")
    return Surroundings(root=tmp_path, own=own, secret=(tmp_path / ".toolgate",))


def read(around: Surroundings, config: dict[str, Any], **fields: Any) -> Command:
    return command(defined(config, **fields), around)


def test_the_other_layout_is_read_into_words(around: Surroundings) -> None:
    given = {
        "name": "dangerous_delete",
        "description": "Delete files",
        "tool_type": "shell",
        "input_schema": {"type": "object", "properties": {"path": TEXT}},
        "implementation_config": {"command": "rm {path}"},
        "metadata": {"is_dangerous": True, "requires_approval": True},
    }
    spec = read_tool(given, origin=Origin("file", "tools.yaml"))
    found = command(spec, around)
    assert found.program in {"/usr/bin/rm", "/bin/rm"}
    assert found.argv.built({"path": "x; y"}) == ["rm", "x; y"]
    assert spec.destructive


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "names no command"),
        ({"argv": ["ls"], "command": "ls"}, "keep one"),
        ({"command": ["ls", "-l"]}, "write it as argv"),
        ({"command": 7}, "is a number, not a text"),
        ({"argv": ["ls", "{other}"]}, "input_schema lacks"),
        ({"argv": ["ls"], "stdin": "{other}"}, "input_schema lacks"),
        ({"argv": ["no-such-program-here"]}, "not on this machine"),
        ({"argv": ["./nowhere"]}, "not on this machine"),
        ({"argv": ["ls", "{paths}"]}, r"write \{paths\.\.\.\}"),
        ({"argv": ["ls", "{path...}"]}, r"write \{path\}"),
        ({"argv": ["ls", "{deep}"]}, "stdin"),
        ({"argv": ["ls", "{path}"], "dashes": ["other"]}, "no word takes"),
        ({"argv": ["ls"], "ats": ["path"]}, "no word takes"),
        ({"argv": ["ls"], "folder": "nowhere"}, "is not there"),
        ({"argv": ["ls"], "folder": "{path}"}, "no path"),
        ({"argv": ["ls"], "readable": ["~"]}, "no path"),
        ({"argv": ["ls"], "writable": ["/"]}, "whole machine"),
        ({"argv": ["ls"], "writable": ["tools"]}, "toolgate's own"),
        ({"argv": ["ls"], "writable": ["."]}, "toolgate's store"),
        ({"argv": ["ls"], "readable": [".toolgate"]}, "toolgate's store"),
        ({"argv": ["ls"], "folder": "."}, "toolgate's store"),
        ({"argv": ["ls"], "output": "xml"}, "not one of"),
        ({"argv": ["ls"], "ok_codes": []}, "no list of exit codes"),
        ({"argv": ["ls"], "ok_codes": [256]}, "256"),
        ({"argv": ["ls"], "limits": {"memory": 1}}, "16"),
        ({"argv": ["ls"], "limits": {"other": 1}}, "unknown key"),
        ({"argv": ["ls"], "surprise": 1}, "unknown key"),
        ({"argv": ["ls"], "env": {"A B": "x"}}, "no variable"),
        ({"argv": ["ls"], "env": {"A": 1}}, "quotes"),
        ({"command": "ls | wc"}, "one program"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    around: Surroundings, config: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        read(around, config)


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "PYTHONPATH", "BASH_ENV", "GIT_SSH", "GIT_SSH_COMMAND", "PATH", "IFS"),
        *("ENV", "NODE_OPTIONS", "PERL5OPT", "EDITOR", "HOME", "HTTPS_PROXY", "arg_x", "FOO"),
    ],
)
def test_no_argument_fills_a_variable_that_programs_know(around: Surroundings, name: str) -> None:
    with pytest.raises(ValueError, match="ARG_"):
        read(around, {"argv": ["ls"], "env": {name: "x{path}"}})
    # An operator's own text, and a variable that is for arguments, are taken.
    assert read(around, {"argv": ["ls"], "env": {name: "/usr/bin", "ARG_X": "{path}"}})


@pytest.mark.parametrize("lacking", ["destructive", "requires_approval", "effect", "shell"])
def test_a_free_shell_says_how_dangerous_it_is(around: Surroundings, lacking: str) -> None:
    properties = {"script": TEXT}
    config: dict[str, Any] = {"shell": True, "argv": ["bash", "-c", "{script}"]}
    assert read(around, config, properties=properties, **FREE)
    assert read(around, {"shell": True}, properties=properties, **FREE)
    careful = {name: value for name, value in FREE.items() if name != lacking}
    if lacking == "effect":
        careful = {"effect": "idempotent", "requires_approval": True, "destructive": True}
    if lacking == "shell":
        config = {"argv": ["bash", "-c", "{script}"]}
    with pytest.raises(ValueError, match=lacking):
        read(around, config, properties=properties, **careful)


@pytest.mark.parametrize(
    "config",
    [
        {"argv": ["find", ".", "-exec", "{path}", ";"]},
        {"argv": ["git", "-c", "core.pager={path}", "log"]},
        {"argv": ["bash"], "stdin": "{path}"},
        {"argv": ["find", ".", "{paths...}"], "dashes": ["paths"]},
        {"argv": ["env", ["ls", "{path}"], "{paths...}"]},
    ],
)
def test_what_runs_an_argument_in_another_way_is_a_free_shell(
    around: Surroundings, config: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="would run an argument as code"):
        read(around, config)
    with pytest.raises(ValueError, match="destructive"):
        read(around, config | {"shell": True})
    assert read(around, config | {"shell": True}, **FREE)


def test_a_program_is_found_once_and_never_where_it_runs(around: Surroundings) -> None:
    for name in ("git", "ls"):
        planted = around.root / "work" / name
        planted.write_text("#!/bin/sh\n")
        planted.chmod(0o755)
    found = read(around, {"argv": ["ls"], "folder": "work"})
    assert found.program in {"/usr/bin/ls", "/bin/ls"}
    # One of the project's own is beside the settings, and out of the command's reach.
    own = around.root / "script"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert read(around, {"argv": ["./script"]}).policy.readable == (str(own),)
    with pytest.raises(ValueError, match="may change"):
        read(around, {"argv": ["work/ls"], "writable": ["work"]})
    link = around.root / "linked"
    link.symlink_to(around.root / "work" / "ls")
    with pytest.raises(ValueError, match="may change"):
        read(around, {"argv": ["./linked"], "writable": ["work"]})


def test_what_a_command_may_use_is_its_policy(around: Surroundings) -> None:
    limits = {"memory": 64, "cpu": 2, "processes": 4, "open_files": 32, "file_size": 1}
    found = read(
        around,
        {
            "argv": ["ls"],
            "writable": ["work"],
            "folder": "work",
            "hosts": ["api.example.com"],
            "limits": {**limits, "output": 1000, "seconds": 3},
        },
    )
    policy = found.policy
    assert policy.writable == (str(around.root / "work"),) == (found.folder,)
    assert policy.readable == ()
    assert (policy.hosts, policy.memory, policy.cpu) == (("api.example.com",), 64 << 20, 2)
    assert (policy.processes, policy.open_files, policy.file_size) == (4, 32, 1 << 20)
    assert (policy.output, policy.seconds, policy.env) == (1000, 3, {})


def test_the_commands_of_the_docs_can_be_used() -> None:
    root = Path(__file__).parents[2] / "examples" / "commands"
    specs = read_tool_file(root / "tools" / "commands.yaml", "commands.yaml")
    found = {spec.name: command(spec, Surroundings(root=root)) for spec in specs}
    assert found["find_in_notes"].argv.built({"text": "-milk", "most": 2})[3:] == [
        "--max-count",
        "2",
        "--",
        "-milk",
        ".",
    ]
    assert found["dangerous_delete"].policy.writable == (str(root / "notes"),)


def test_a_command_that_lacks_its_interpreter_is_told_what_to_name(
    around: Surroundings, tmp_path: Path
) -> None:
    far = tmp_path / "far" / "bin" / "interpreter"
    far.parent.mkdir(parents=True)
    script = tmp_path / "work" / "script"
    for file, first in ((far, "#!/bin/sh"), (script, f"#!{far}")):
        file.write_text(f"{first}\n")
        file.chmod(0o755)
    config = {"argv": ["work/script"]}
    with pytest.raises(ValueError, match=f"cannot begin: .* put {tmp_path}/far in `readable`"):
        read(around, config)
    assert read(around, config | {"readable": ["far"]}).program == str(script)
    # Whatever the settings let every program read counts, and an image has its own.
    for other in ({"readable": (str(tmp_path / "far"),)}, {"is_here": False}):
        assert read(msgspec.structs.replace(around, **other), config)
