"""The words of a command: literal, one for an argument, and none that steers the program."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.payloads import CANARY, FILE_LISTS, FIRING, IMPOSSIBLE, LITERAL, OPTIONS
from toolgate.providers.shell.argv import Argv, argv
from toolgate.providers.shell.line import words
from toolgate.providers.shell.template import Unfit

pytestmark = pytest.mark.req("P4")
RM = argv(words("rm {path}"))
# Every way in which a text can stand in a command.
SHAPES = {
    "alone": argv(["rm", "{path}"]),
    "quoted": argv(words("rm '{path}'")),
    "before text": argv(["scp", "{path}:x"]),
    "two at once": argv(["rm", "{empty}{path}"]),
    "a list": argv(["rm", "{paths...}"]),
    "may be left out": argv(["rm", ["-n", "{path}"]]),
    "behind a -- that may be left out": argv(["rm", ["--", "{other}"], "{path}"]),
    "behind the -- of another program": argv(["env", "--", "git", "log", "{path}"]),
}


def built(command: Argv, value: Any) -> list[str]:
    return command.built({"path": value, "paths": [value], "empty": "", "other": "x"})


def test_there_are_enough_payloads() -> None:
    assert len(LITERAL) >= 300
    assert len(OPTIONS) >= 60


@pytest.mark.parametrize("payload", LITERAL)
def test_what_a_shell_would_read_is_one_word(payload: str) -> None:
    assert built(RM, payload) == ["rm", payload]
    assert built(SHAPES["a list"], payload) == ["rm", payload]
    assert argv(["ls", "--name={path}/x"]).built({"path": payload}) == ["ls", f"--name={payload}/x"]


@pytest.mark.parametrize("payload", FIRING)
def test_the_same_payloads_fire_where_a_shell_reads_them(payload: str, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    for line in (f"rm {payload}", f"rm '{payload}'", f'rm "{payload}"'):
        subprocess.run([bash, "-c", line], cwd=tmp_path, capture_output=True, check=False)
    assert (tmp_path / CANARY).exists()


@pytest.mark.parametrize("shape", SHAPES)
def test_no_argument_becomes_an_option(shape: str) -> None:
    for payload in OPTIONS:
        with pytest.raises(Unfit, match="dash or a plus"):
            built(SHAPES[shape], payload)
    assert built(SHAPES[shape], "harmless-name")


def test_a_dash_is_taken_where_it_is_declared_or_begins_no_option() -> None:
    for payload in OPTIONS:
        assert argv(["x", "{path}"], dashes=("path",)).built({"path": payload}) == ["x", payload]
        assert argv(["x", "--", "{path}"]).built({"path": payload}) == ["x", "--", payload]
        assert argv(["x", "--a={path}"]).built({"path": payload}) == ["x", f"--a={payload}"]
        assert argv(["x", "a", "--", "b", "{p...}"]).built({"p": [payload]})[-1] == payload


@pytest.mark.parametrize("shape", SHAPES)
def test_no_argument_names_a_file_of_further_arguments(shape: str) -> None:
    for payload in FILE_LISTS:
        with pytest.raises(Unfit, match="begins with @"):
            built(SHAPES[shape], payload)
        with pytest.raises(Unfit, match="begins with @"):
            argv(["curl", "--data={path}"]).built({"path": payload})
    assert argv(["x", "{path}"], ats=("path",)).built({"path": "@me"}) == ["x", "@me"]


@pytest.mark.parametrize("payload", IMPOSSIBLE)
def test_what_no_program_can_be_given_is_refused(payload: str) -> None:
    for command in (RM, SHAPES["a list"], argv(["x", "--", "{path}"], dashes=("path",))):
        with pytest.raises(Unfit) as refused:
            built(command, payload)
        assert payload not in refused.value.reason


def test_a_command_has_an_end() -> None:
    with pytest.raises(Unfit, match="too long"):
        argv(["rm", "{p...}"]).built({"p": ["x" * 99_999] * 11})
    with pytest.raises(Unfit, match="too long"):
        argv(["rm", "{p...}"]).built({"p": ["x"] * 10_001})


@given(st.text(), st.text())
def test_any_two_texts_are_two_words_or_refused(first: str, second: str) -> None:
    command = argv(["x", "{a}", "--b={b}"])
    try:
        made = command.built({"a": first, "b": second})
    except Unfit:
        return
    assert made == ["x", first, f"--b={second}"]


def test_values_become_words_as_they_are_written() -> None:
    command = argv(["x", "{a}"])
    assert [command.built({"a": one})[1] for one in (1, 1.5, True, False, "")] == [
        "1",
        "1.5",
        "true",
        "false",
        "",
    ]
    for odd in ([1], {"a": 1}, float("nan")):
        with pytest.raises(Unfit, match="text or a number"):
            command.built({"a": odd})
    with pytest.raises(Unfit, match="a list of texts"):
        argv(["x", "{a...}"]).built({"a": "text"})


def test_what_may_be_left_out_is_left_out_whole() -> None:
    command = argv(["git", "log", ["-n", "{count}"], "--", "{path}"])
    assert command.built({"path": "x"}) == ["git", "log", "--", "x"]
    assert command.built({"path": "x", "count": 3}) == ["git", "log", "-n", "3", "--", "x"]
    with pytest.raises(Unfit, match="is missing") as missing:
        command.built({"count": 3})
    assert missing.value.name == "path"
    assert argv(["x", "{a}"], defaults={"a": "y"}).built({}) == ["x", "y"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ls | wc", "one program"),
        ("ls && rm", "one program"),
        ("ls; rm", "one program"),
        ("ls\nrm", "one line"),
        ("ls > x", "the tool's result"),
        ("wc < x", "write stdin"),
        ("ls $HOME", "no variable"),
        ('ls "$HOME"', "single quotes"),
        ("ls `id`", "no command"),
        ('ls "`id`"', "single quotes"),
        ("ls $(id)", "no variable"),
        ("ls *.py", "no file names"),
        ("ls a?", "no file names"),
        ("ls [ab]", "no file names"),
        ("ls ~/x", "home folder"),
        ("ls # all", "no comments"),
        ("FOO=1 ls", "write env"),
        ("(ls)", "single quotes"),
        ("ls 'x", "never closes"),
        ("ls \\", "backslash"),
    ],
)
def test_what_only_a_shell_could_do_is_refused_with_what_to_write(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        words(line)


def test_a_line_is_split_as_a_shell_splits_it() -> None:
    line = r"""grep -e 'a  b' "c \"d\"" e\ f '' x"y"'z' '*' a=b"""
    assert words(line) == ["grep", "-e", "a  b", 'c "d"', "e f", "", "xyz", "*", "a=b"]
    shown = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split("\n")[:-1] == words(line)


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([], "no list"),
        ("rm", "no list"),
        (["{program}"], "does not begin with a program"),
        ([["ls"]], "does not begin with a program"),
        (["ls", 1], "no text"),
        (["ls", ["-l"]], "without an argument"),
        (["ls", "-{flags}"], "which option"),
        (["ls", "--{flags}"], "which option"),
        (["ls", "{a...}/x"], "stands by itself"),
        (["awk", "{print $1}"], r"write \{\{"),
        (["ls", "}"], r"write \}\}"),
        (["ls", "{}"], r"write \{\{"),
        (["ls", "a\0b"], "NUL"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(listed: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        argv(listed)


def test_braces_can_be_written() -> None:
    assert argv(["awk", "{{print $1}}", "{f}"]).built({"f": "x"}) == ["awk", "{print $1}", "x"]
    assert argv(["find", "-exec", "rm", "{{}}", ";"]).built({})[3] == "{}"
