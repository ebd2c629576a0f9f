"""Programs that are known to run others, or what they are told, by name."""

_INTERPRETERS = """
ash awk bash bun busybox csh dash deno elvish emacs ex expect fish gawk groovy guile ipython java
jshell julia ksh lua luajit mawk mksh nawk node nodejs nu osascript perl php powershell pwsh pypy
python racket raku rscript ruby sed sh sqlite3 tclsh ts-node vi vim xonsh yash zsh
"""
_WRAPPERS = """
chroot doas env flock ionice nice nohup nsenter runuser setpriv setsid stdbuf strace sudo taskset
time timeout unshare xargs
"""
_JOINERS = "at batch crontab eval parallel rsh screen script ssh su tmux watch"
_RUNNERS = """
bundle cargo docker find go hatch kubectl make nerdctl npm npx pipx pnpm podman poetry uv uvx yarn
"""
# What is handed to them is code, or the file with it.
INTERPRETERS = frozenset(_INTERPRETERS.split())
# They run another program, which stands further back.
WRAPPERS = frozenset(_WRAPPERS.split())
# They put words together again for a shell, here or elsewhere.
JOINERS = frozenset(_JOINERS.split())
# What stands behind their `--` can be an option of the program that they run.
HAND_ON = WRAPPERS | JOINERS | frozenset(_RUNNERS.split())
