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
from toolgate.providers.shell.code import STDIN, runs_arguments
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


def runs_any(found: Argv, *rest: str) -> bool:
    return any(runs_arguments(one) for one in found.shapes(rest))


def runs(line: str, *, stdin: bool = False) -> bool:
    return runs_any(argv(words(line)), *((STDIN,) if stdin else ()))


@pytest.mark.parametrize(
    "line",
    [
        "bash -c {x}",
        "bash -c 'ls {x}'",
        "/bin/sh -ec {x}",
        "python3 -c {x}",
        "python3.11 -Ic {x}",
        "python3 -W ignore -c {x}",
        "python3 {x}",
        "bash {x}",
        "perl -e {x}",
        "node --eval {x}",
        "awk {x} file",
        "sed -e {x}",
        "sed {x}",
        "sed -e s/a/b/ -e {x} file",
        "sed -e s/a/b/ -e{x} file",
        "sed -e s/a/b/ --expression={x} file",
        "awk -f own.awk -f {x}",
        "env {x}",
        "env A=b bash -c {x}",
        "timeout 5 bash -c {x}",
        "sudo -u me {x}",
        "xargs {x}",
        "ssh host ls {x}",
        "watch ls {x}",
        "busybox sh -c {x}",
        # Interpreters whose options have words of their own, or verbs.
        "busybox sh {x}",
        "bash -o pipefail {x}",
        "python3 -X dev {x}",
        "node -r ./a.js {x}",
        "java -cp a.jar {x}",
        "deno eval {x}",
        "deno run {x}",
        "bun run {x}",
        "bun x {x}",
        "sqlite3 notes.db {x}",
        "psql notes -c {x}",
        "psql notes --command={x}",
        "mysql -e {x}",
        # What runs another program, behind something else.
        "nice {x}",
        "nice -n 5 {x}",
        "timeout 5 {x}",
        "chroot /srv {x}",
        "flock /tmp/lock {x}",
        "flock /tmp/lock -c {x}",
        "runuser me -c {x}",
        "sudo -n ssh host {x}",
        "xargs -0 sh -c {x}",
        # Packages and projects.
        "npx {x}",
        "npx -y {x}",
        "npx tool@{x}",
        "npx -p {x} tool",
        "npx --package={x} tool",
        "npx -c {x}",
        "npx ts-node {x}",
        "npm {x}",
        "npm exec {x}",
        "npm exec -- {x}",
        "npm run {x}",
        "npm -g install {x}",
        "pnpm dlx {x}",
        "yarn add {x}",
        "uvx {x}",
        "uvx --from {x} tool",
        "uv run {x}",
        "uv run --with {x} script.py",
        "uv run python -c {x}",
        "uv tool run {x}",
        "uv pip install {x}",
        "pipx run {x}",
        "pip install {x}",
        "poetry run {x}",
        "hatch run test {x}",
        "bundle exec {x}",
        "cargo {x}",
        "cargo run --manifest-path {x}",
        "cargo install {x}",
        "go run {x}",
        "go run -exec {x} .",
        "go run -exec={x} .",
        "make {x}",
        "make all VALUE={x}",
        "just deploy {x}",
        "pytest {x}",
        # Containers and clusters.
        "docker run {x}",
        "docker run --rm repo/{x}",
        "docker run --rm alpine {x}",
        "docker run --entrypoint={x} alpine",
        "docker run -v {x}:/data alpine ls",
        "docker run alpine sh -c {x}",
        "docker exec -i box {x}",
        "docker container run {x}",
        "docker compose exec app {x}",
        "docker build {x}",
        "podman run {x}",
        "nerdctl run --name box alpine {x}",
        "kubectl exec pod -- {x}",
        "kubectl exec pod -c box -- sh -c {x}",
        "kubectl run pod --image={x}",
        # Options that hold a command, and commands among the words.
        "find . -exec {x} ';'",
        "find . -name a -execdir sh -c {x} ';'",
        "fd --exec {x}",
        "git {x}",
        "git -c {x} log",
        "git -c core.pager={x} log",
        "git --exec-path={x} log",
        "git config core.pager {x}",
        "git bisect run {x}",
        "git submodule foreach {x}",
        "git rebase --exec {x}",
        "git clone --upload-pack={x} there",
        "git grep -O{x} text",
        "tar --checkpoint-action=exec={x} -cf a.tar b",
        "tar -I {x} -xf a.tar",
        "rsync -e {x} a b",
        "scp -o ProxyCommand={x} a b:",
        "sort --compress-program={x} a",
        "rg --pre {x} text",
        "wget -e {x} there",
    ],
)
def test_a_program_that_would_run_an_argument_is_known(line: str) -> None:
    assert runs(line)


@pytest.mark.parametrize(
    "line",
    ["bash", "sh -s", "python3", "python3 -", "bash -e", "timeout 5 bash", "xargs sh -c", "psql a"],
)
def test_code_on_the_standard_input_is_code(line: str) -> None:
    assert runs(line, stdin=True)
    assert not runs(line)


@pytest.mark.parametrize(
    "line",
    ["wc", "python3 tool.py", "sed -e s/a/b/", "sed s/a/b/ -E", "timeout 5 tee a", "xargs rm"],
)
def test_a_text_on_the_standard_input_is_none(line: str) -> None:
    assert not runs(line, stdin=True)


def test_an_argument_that_may_be_an_option_is_code_where_options_are() -> None:
    assert runs_any(argv(["tar", "-cf", "a.tar", "{x}"], dashes=("x",)))
    assert runs_any(argv(["find", ".", "{x...}"], dashes=("x",)))
    assert runs_any(argv(["sed", "-e", "s/a/b/", "{x}"], dashes=("x",)))
    # Behind a `--`, and to a program whose options run nothing, it is a word.
    assert not runs_any(argv(["tar", "-cf", "a.tar", "--", "{x}"], dashes=("x",)))
    assert not runs_any(argv(["ls", "{x}"], dashes=("x",)))


def test_what_stands_fast_only_with_an_argument_stands_not() -> None:
    assert runs_any(argv(["python3", ["tool.py", "{a}"], "{b}"]))
    assert runs_any(argv(["git", "-C", "{a...}", "log", "{b}"]))
    assert not runs_any(argv(["python3", "tool.py", ["--most", "{a}"], "{b}"]))


@pytest.mark.parametrize(
    "line",
    [
        "rm {x}",
        "git log -- {x}",
        "python3 tool.py {x}",
        "bash script.sh {x}",
        "sh -c 'rm $1' sh {x}",
        "env A=b ls {x}",
        "timeout 5 ls {x}",
        "timeout 5 python3 tool.py {x}",
        "grep -r python {x}",
        "sed -e s/a/b/ {x}",
        "sed -e s/a/b/ -i {x}",
        "ssh host ls",
        "bash -c ls",
        "python3 -m tool {x}",
        "node -r ./a.js app.js {x}",
        "java -jar app.jar {x}",
        "deno run app.ts {x}",
        "psql -v name={x} -f query.sql",
        "sudo -n ls {x}",
        "nice -n 5 ls {x}",
        "flock -n /tmp/lock ls {x}",
        "xargs -0 rm {x}",
        # The package, image or project stands fast, and the argument is its own.
        "npx prettier {x}",
        "npx -y prettier --write {x}",
        "npm run build -- {x}",
        "npm view {x}",
        "uvx ruff check {x}",
        "uv run script.py {x}",
        "uv run --with rich script.py {x}",
        "uv tool run ruff {x}",
        "poetry run tool {x}",
        "cargo run -- {x}",
        "go run . {x}",
        "go test ./... -run {x}",
        "docker ps --filter {x}",
        "docker run --rm --name box alpine ls {x}",
        "docker exec -i box cat {x}",
        "kubectl get pods -n {x}",
        "kubectl -n {x} get pods",
        "kubectl exec -it pod -c box -- ls {x}",
        "find {x} -name a",
        "find . -name {x} -exec rm '{{}}' ';'",
        "find . -exec grep {x} '{{}}' ';'",
        "git -C {x} log",
        "git --git-dir={x} log",
        "git clone {x}",
        "tar -xf {x}",
        "rsync -a {x} there",
        "make all",
    ],
)
def test_a_program_with_its_own_code_is_none(line: str) -> None:
    assert not runs(line)
