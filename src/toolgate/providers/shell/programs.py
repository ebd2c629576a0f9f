"""Programs that are known to run others, or what they are told: one table, a row a program.

A row says how a program finds what it runs among its words. What stands behind a program that
stands fast is an argument of that one; what chooses the program, or is its text, is code.
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

_NONE: Mapping[str, "Rule"] = MappingProxyType({})


def _all(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """How a program, or one of its verbs, finds what it runs."""

    # Whatever stands in it is run, or put together again for a shell.
    every: bool = False
    # Its first free word is a program with words of its own, behind so many others (an image).
    leads: bool = False
    skips: int = 0
    # Its first free word is what runs: a script, a target. What follows is handed to it.
    picks: bool = False
    # Its first free word says which of these holds; another one runs nothing.
    verbs: Mapping[str, "Rule"] = _NONE
    # Options: their value is run or loaded; harmless with a value; harmless without one.
    code: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    # Words behind which another command stands, up to a `;` or `+`.
    behind: frozenset[str] = frozenset()
    # What it reads on its standard input is run.
    listens: bool = False


_EVERY = Rule(every=True)
_PICKS = Rule(picks=True)
_LEADS = Rule(leads=True)


def _rows(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


def _options(names: str, options: str) -> dict[str, frozenset[str]]:
    return dict.fromkeys(names.split(), _all(options))


def _verbs(*rows: dict[str, Rule], takes: frozenset[str] = frozenset()) -> Rule:
    found = {name: rule for row in rows for name, rule in row.items()}
    return Rule(verbs=MappingProxyType(found), takes=takes)


_INTERPRETERS = """
ash awk bash csh dash elvish emacs ex expect fish gawk groovy guile ipython java jshell julia ksh
lua luajit mawk mksh nawk node nodejs nu osascript perl php powershell pwsh pypy python racket raku
rscript ruby sed sh tclsh ts-node tsx vi vim xonsh yash zsh
"""
# What is handed to them is code, or the file with it.
INTERPRETERS = frozenset(_INTERPRETERS.split())
# Options of theirs that have a word of their own and are not the code yet.
LOADS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **_options("ash bash dash ksh mksh sh yash zsh", "-o -O +o +O"),
        **_options("awk gawk mawk nawk", "-v -F -i -l --assign --include"),
        **_options("node nodejs ts-node tsx", "-r --require --import -C -P"),
        **_options("pypy python ipython", "-W -X"),
        "bash": _all("-o -O +o +O --rcfile --init-file"),
        "java": _all("-cp -classpath --class-path -p --module-path --add-modules -D"),
        "julia": _all("-L -p -t -J --project"),
        "lua": _all("-l"),
        "perl": _all("-I -M"),
        "php": _all("-d -c -z"),
        "ruby": _all("-I -r -C"),
    }
)
_WRAPPERS: dict[str, Rule] = {
    **_rows("busybox doas ionice nohup nsenter setpriv stdbuf strace taskset unshare", _LEADS),
    "chroot": Rule(leads=True, skips=1),
    "env": Rule(leads=True, bare=_all("-i -0 -v -"), code=_all("-S --split-string")),
    "flock": Rule(leads=True, skips=1, bare=_all("-n -x -s -o -F"), code=_all("-c --command")),
    "nice": Rule(leads=True, takes=_all("-n --adjustment")),
    "setsid": Rule(leads=True, bare=_all("-c -f -w")),
    "sudo": Rule(leads=True, bare=_all("-n -E -H -k -b")),
    "time": Rule(leads=True, bare=_all("-p -v")),
    "timeout": Rule(leads=True, bare=_all("--foreground --preserve-status -v")),
    "xargs": Rule(leads=True, bare=_all("-0 -r -t -x --null --no-run-if-empty")),
}
# They put words together again for a shell, here or elsewhere.
_JOINERS = _rows(
    "at batch crontab eval hatch parallel rsh runuser screen script ssh su tmux watch", _EVERY
)

_IN_IMAGE = Rule(leads=True, skips=1, bare=_all("-i -t -it -ti -d --init --read-only --rm"))
_IMAGES = {**_rows("exec run create", _IN_IMAGE), **_rows("build commit import", _EVERY)}
_ENGINE = _verbs(
    _IMAGES,
    _rows("container", _verbs(_IMAGES)),
    _rows("compose", _verbs(_rows("exec run", _IN_IMAGE), _rows("build config create up", _EVERY))),
    _rows("buildx builder kube machine plugin service stack", _EVERY),
)
_IN_PACKAGE = Rule(
    leads=True,
    bare=_all("-y --yes --no --no-install -q --quiet --silent"),
    code=_all("-c --call -p --package --from --with --with-editable --with-requirements --spec"),
)
# What is added runs its own steps while it is installed.
_ADDED = _rows("add ci create get init inject install i link rebuild set update upgrade", _EVERY)
_SCRIPTS = _rows("run run-script", _PICKS)
_NPM = _verbs(
    _ADDED, _SCRIPTS, _rows("exec x dlx", _IN_PACKAGE), _rows("config explore node", _EVERY)
)
_BUILD = Rule(code=_all("--bin --config --example --manifest-path --package -p -C -Z"))
_GO = Rule(
    picks=True,
    code=_all("-exec -gcflags -ldflags -modfile -overlay -toolexec -vettool"),
    takes=_all("-o -run -tags"),
)
_RUNNERS: dict[str, Rule] = {
    **_rows("ant cmake gmake gradle gradlew just make mvn ninja nox pytest rake scons tox", _EVERY),
    **_rows("docker nerdctl podman", _ENGINE),
    **_rows("npm pnpm yarn", _NPM),
    **_rows("bunx npx pnpx uvx", _IN_PACKAGE),
    **_rows("conda mamba poetry", _verbs(_ADDED, _rows("run", _LEADS), _rows("config", _EVERY))),
    "bun": _verbs(
        _ADDED, _rows("run test", _PICKS), _rows("x", _IN_PACKAGE), _rows("exec", _EVERY)
    ),
    "bundle": _verbs(_ADDED, _rows("exec", _LEADS), _rows("config", _EVERY)),
    "cargo": _verbs(_rows("bench build check clippy run test", _BUILD), _ADDED),
    "deno": _verbs(_rows("run bench compile serve task test", _PICKS), _rows("eval x", _EVERY)),
    "fd": Rule(behind=_all("-x -X --exec --exec-batch")),
    "find": Rule(behind=_all("-exec -execdir -ok -okdir")),
    "go": _verbs(_rows("build run test vet", _GO), _rows("generate tool", _EVERY), _ADDED),
    "kubectl": _verbs(
        _rows("exec", Rule(leads=True, skips=1, bare=_all("-i -t -it -ti"))),
        _rows("config debug plugin run", _EVERY),
        takes=_all("-n --namespace --context"),
    ),
    "pipx": _verbs(_ADDED, _rows("run", _IN_PACKAGE), _rows("runpip", _EVERY)),
    "uv": _verbs(
        _ADDED,
        _rows("run", msgspec.structs.replace(_IN_PACKAGE, takes=_all("-p --python"))),
        _rows("pip", _verbs(_ADDED, _rows("sync", _EVERY))),
        _rows("tool", _verbs(_ADDED, _rows("run", _IN_PACKAGE))),
    ),
}

_GIT = _verbs(
    _rows("bisect config filter-branch send-email", _EVERY),
    _rows("submodule", _verbs(_rows("foreach", _EVERY))),
    _rows("rebase", Rule(code=_all("-x --exec"))),
    _rows("clone", Rule(code=_all("-c --config -u --upload-pack --template"))),
    _rows("fetch fetch-pack ls-remote pull", Rule(code=_all("--upload-pack --exec"))),
    _rows("archive push send-pack", Rule(code=_all("--receive-pack --exec"))),
    _rows("grep", Rule(code=_all("-O --open-files-in-pager"))),
    _rows("difftool mergetool", Rule(code=_all("-x --extcmd -t --tool"))),
    takes=_all("-C --git-dir --work-tree --namespace"),
)
_TAR = _all(
    "-F -I --checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command "
    "--to-command --use-compress-program"
)
_ASKED = Rule(code=_all("-c -e -f --command --execute --file --init-command"), listens=True)
_OTHERS: dict[str, Rule] = {
    # Interpreters, too; but more code may come behind the first.
    **_rows("awk gawk mawk nawk", Rule(code=_all("-e -f -i -l --file --include --source"))),
    "sed": Rule(code=_all("-e -f --expression --file")),
    **_rows("bsdtar gtar tar", Rule(code=_TAR)),
    **_rows("mariadb mysql psql", _ASKED),
    **_rows("pip pip2 pip3", _verbs(_rows("download install wheel config", _EVERY))),
    **_rows("dc duckdb gdb lldb sqlite3", Rule(every=True, listens=True)),
    **_rows("scp sftp", Rule(code=_all("-D -F -o -S"))),
    "ed": Rule(listens=True),
    "gem": _verbs(_ADDED, _rows("exec", _EVERY)),
    "git": _GIT,
    "man": Rule(code=_all("-H -P --html --pager")),
    "openssl": Rule(code=_all("-config -engine -provider -provider-path")),
    "rg": Rule(code=_all("--pre --hostname-bin")),
    "rsync": Rule(code=_all("-e --rsh --rsync-path")),
    "sort": Rule(code=_all("--compress-program")),
    "split": Rule(code=_all("--filter")),
    "tcpdump": Rule(code=_all("-z")),
    "wget": Rule(code=_all("-e --config --execute --use-askpass")),
    "zip": Rule(code=_all("-TT --unzip-command")),
}

PROGRAMS: Mapping[str, Rule] = MappingProxyType(_WRAPPERS | _JOINERS | _RUNNERS | _OTHERS)
# What stands behind their `--` can be an option of the program that they run.
HAND_ON = frozenset(_WRAPPERS | _JOINERS | _RUNNERS)
