"""What somebody means who names a command that there is none of: other tools call it otherwise."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from typer._click.exceptions import UsageError
from typer.core import TyperGroup

# By which words others know what is done here; the first that a group has is what is meant.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "accept": ("approve",),
    "add": ("set", "new"),
    "create": ("add", "new", "set"),
    "delete": ("remove", "revoke", "discard"),
    "describe": ("show", "list"),
    "get": ("show", "list"),
    "info": ("show",),
    "make": ("add", "new", "set"),
    "new": ("add", "set"),
    "off": ("disable",),
    "on": ("enable",),
    "reject": ("deny",),
    "rm": ("remove", "revoke", "discard"),
    "rollback": ("undo",),
    "show": ("list",),
    "update": ("set", "reload"),
}
# The same where no group was named.
ABOVE: Mapping[str, str] = {
    "approve": "approvals approve",
    "config": "doctor",
    "create": "init",
    "deny": "approvals deny",
    "export": "tools export",
    "flags": "tools enable",
    "import": "tools import",
    "list": "tools list",
    "mcp": "servers",
    "new": "init",
    "run": "call",
    "search": "tools search",
    "start": "serve",
    "status": "doctor",
    "undo": "ledger undo",
    "verify": "audit verify",
    "version": "--version",
}


class Group(TyperGroup):
    """Commands of one noun. Who misses one is told the nearest, or which there are."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.suggest_commands = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            if args:
                error.message = _said(error, below(args[0], self.commands))
            raise


def below(word: str, known: Iterable[str]) -> str:
    """The hint for a word that a group does not know."""
    known = list(known)
    for meant in _WORDS.get(word, ()):
        if meant in known:
            return f"Did you mean {meant!r}?"
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.7)
    return f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known)}."


def above(error: UsageError, word: str, known: Iterable[str]) -> str:
    """What to say of a first word that is no command."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.7)
    meant = ABOVE.get(word) or (near[0] if near else "")
    return _said(error, f"Did you mean {meant!r}?") if meant else error.message


def _said(error: UsageError, hint: str) -> str:
    return f"{error.message.rstrip('.')}. {hint}"
