"""Programs that would run what they are given: known by their command, argument by argument."""

import pytest

from toolgate.providers.shell.argv import Argv, argv
from toolgate.providers.shell.code import STDIN, runs_arguments
from toolgate.providers.shell.line import words

pytestmark = pytest.mark.req("P4")


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
