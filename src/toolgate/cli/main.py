"""`toolgate`: the command line. A command's module is loaded when the command is used."""

import errno
import gc
import importlib
import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import typer
from typer._click.exceptions import UsageError
from typer.completion import (
    completion_init,  # pyright: ignore[reportPrivateImportUsage]  its own apps do so unasked
    install_callback,
    show_callback,
)
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from toolgate import __version__
from toolgate.cli import show
from toolgate.cli.meant import Group, above

# What a full or broken place to write to answers; any other is a mistake of ours.
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


# How a shell asks what could come next.
_COMPLETE = "_TOOLGATE_COMPLETE"
_COMPLETIONS = frozenset({"--install-completion", "--show-completion"})


class Shell(StrEnum):
    """What can complete commands."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Entry(NamedTuple):
    """Where a command lives, and what it is for."""

    module: str
    about: str


COMMANDS: Mapping[str, Entry] = {
    "init": Entry("toolgate.cli.init", "Write a toolgate.toml, an example tool and a policy here."),
    "serve": Entry("toolgate.cli.serve", "Start the server."),
    "worker": Entry("toolgate.cli.worker", "Run queued calls, without doors."),
    "stdio": Entry("toolgate.cli.stdio", "Serve MCP on standard input and output."),
    "tools": Entry("toolgate.cli.tools", "List, show, switch and export tools."),
    "servers": Entry("toolgate.cli.servers", "MCP servers whose tools are offered here."),
    "plugins": Entry("toolgate.cli.plugins", "Plugins: code and tools in a folder."),
    "tenants": Entry("toolgate.cli.tenants", "List and add tenants."),
    "agents": Entry("toolgate.cli.agents", "Agents and their capsules."),
    "roles": Entry("toolgate.cli.roles", "What a role may use."),
    "layers": Entry("toolgate.cli.layers", "Layers that narrow what may be called."),
    "personas": Entry("toolgate.cli.personas", "What personas may not do."),
    "relations": Entry("toolgate.cli.relations", "Who stands how to which tool."),
    "limits": Entry("toolgate.cli.limits", "Rate limits and budgets of tenants."),
    "usage": Entry("toolgate.cli.usage", "Show what tenants have used of their budgets."),
    "approvals": Entry("toolgate.cli.approvals", "What persons are asked, and decide."),
    "policy": Entry("toolgate.cli.policy", "Check, test and replay policies."),
    "audit": Entry("toolgate.cli.audit", "What is on record, and the proof of it."),
    "keys": Entry("toolgate.cli.keys", "Make, list and revoke keys."),
    "call": Entry("toolgate.cli.call", "Call a tool."),
    "ledger": Entry("toolgate.cli.ledger", "Show, take back and settle what agents did."),
    "queue": Entry("toolgate.cli.queue", "Calls that wait for a worker, and dead ones."),
    "explain": Entry("toolgate.cli.explain", "Say why an agent may, or may not, call a tool."),
    "store": Entry("toolgate.cli.store", "Whether the store is the one last seen here."),
    "migrate": Entry("toolgate.cli.migrate", "Make or upgrade the tables of the store."),
    "doctor": Entry("toolgate.cli.doctor", "Check every part and say what to do."),
}


def _without_a_type(option: Any) -> Any:
    """A flag takes no value, so help shows none."""
    if option is not None:
        option.metavar = ""
    return option


def _plain_in_a_pipe(*commands: Any) -> None:
    """Boxes are for who looks at them: a pipe, a file or a pager gets text of its width."""
    if not sys.stdout.isatty():
        for one in commands:
            one.rich_markup_mode = None


def _asked_servers() -> set[str]:
    """Those that a command has asked; where its module is not loaded, none."""
    far = sys.modules.get("toolgate.cli.far")
    return set() if far is None else far.HEARD


def _wrong(error: UsageError) -> typer.Exit:
    """Wrong usage that was found before any command ran, as JSON."""
    from toolgate.cli.session import usage  # noqa: PLC0415  only a mistake pays for it

    return usage(error.format_message(), json=True)


def _with_the_shell(arguments: list[str]) -> list[str]:
    """Whoever names no shell means the one they sit at, where it is one of ours."""
    here = os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119  a name, and no file
    if arguments and arguments[-1] in _COMPLETIONS and here in list(Shell):
        return [*arguments, here]
    return arguments


class LazyGroup(TyperGroup):
    """Lists commands from the table, and imports one only to run it."""

    _running = False

    def main(self, *args: Any, **more: Any) -> Any:
        """All of it."""
        _plain_in_a_pipe(self)
        return super().main(*args, **more)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What stands before the command; who asked for JSON is told in it what does not fit."""
        json = "--json" in args
        try:
            return super().parse_args(ctx, _with_the_shell(args))
        except UsageError as error:
            if not json:
                raise
            raise _wrong(error) from None

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself when it is about to run; else only its name and summary."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if not self._running:
            return TyperCommand(cmd_name, help=entry.about)
        module = importlib.import_module(entry.module)
        module.app.info.cls = Group
        command = get_command(module.app)
        command.name = cmd_name
        whole = (command, *getattr(command, "commands", {}).values())
        _plain_in_a_pipe(*whole)
        for one in whole:
            _without_a_type(one.get_help_option(ctx))
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run it. What a server has answered may not fit what a command shows of it."""
        json = "--json" in ctx.args
        _asked_servers().clear()
        try:
            return super().invoke(ctx)
        except UsageError as error:
            if not json:
                raise
            raise _wrong(error) from None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            if not _asked_servers():
                raise
            from toolgate.cli import misfit  # noqa: PLC0415  only who asked a server needs it

            misfit.tell(error, json=json)

    def get_help_option(self, ctx: Any) -> Any:
        """The group's own."""
        return _without_a_type(super().get_help_option(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """What the command line asks to run."""
        self._running = True
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            if args:
                error.message = above(error, args[0], COMMANDS)
            raise
        finally:
            self._running = False


app = typer.Typer(
    cls=LazyGroup,
    name="toolgate",
    no_args_is_help=True,
    # With options of our own, which name the shell.
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A governed tool runtime and gateway for AI agents.",
)


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"toolgate {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", metavar="", callback=_version, is_eager=True, help="Show the version."
    ),
    install_completion: Shell | None = typer.Option(
        None,
        "--install-completion",
        metavar="SHELL",
        callback=install_callback,
        is_eager=True,
        help="Let a shell complete commands: bash, zsh or fish.",
    ),
    show_completion: Shell | None = typer.Option(
        None,
        "--show-completion",
        metavar="SHELL",
        callback=show_callback,
        is_eager=True,
        help="Show what that would install.",
    ),
) -> None:
    """A governed tool runtime and gateway for AI agents."""


def main() -> None:
    """The entry point of the `toolgate` command."""
    # Loading makes many objects and no garbage; looking for it takes a tenth of a start.
    gc.set_threshold(100_000, 20, 50)
    if _COMPLETE in os.environ:
        completion_init()
    try:
        "".join(sys.argv).encode()
    except UnicodeEncodeError:
        # Neither JSON nor the store could carry it.
        sys.exit("An argument is not UTF-8 text.")
    try:
        app()
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        sys.exit(show.unwritten(error).exit_code)
    finally:
        _flush()


def _flush() -> None:
    """What typer wrote itself, such as help, may wait for the end of the process."""
    try:
        show.flush()
    except OSError as error:
        sys.exit(show.unwritten(error).exit_code)
